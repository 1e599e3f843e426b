"""Settings model: the whole of ``hopwatch.toml``, and the keys of transport, store, monitor and streams.

The keys of other tables are in modules beside this one, such as :mod:`monitor.settings.gate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway, PathwayError
from hopwatch.monitor.results import MAX_LOST_IDS, OTHER
from hopwatch.monitor.selftest.stream import SELFTEST_CONFIG, SELFTEST_STREAM
from hopwatch.monitor.settings import cross_checks, error_details
from hopwatch.monitor.settings.alerting import AlertsSettings
from hopwatch.monitor.settings.api import ApiSettings
from hopwatch.monitor.settings.completeness import CompletenessSettings, ContractName
from hopwatch.monitor.settings.dashboard import DashboardSettings
from hopwatch.monitor.settings.deliver import DeliveryName, DeliverySettings, TopicUrl
from hopwatch.monitor.settings.durations import format_duration_us, parse_positive_us
from hopwatch.monitor.settings.fields import Duration, PositiveDuration, PositiveInt, Ratio, as_tuple
from hopwatch.monitor.settings.gate import GateSettings
from hopwatch.monitor.settings.kafka import KafkaSettings
from hopwatch.monitor.settings.labels import check_label_name, check_label_value
from hopwatch.monitor.settings.locations import parse_folder, parse_store_url, parse_transport_url
from hopwatch.monitor.settings.metrics import MetricsSettings
from hopwatch.monitor.settings.otlp import OtlpSettings
from hopwatch.monitor.settings.results import ResultsSettings
from hopwatch.monitor.settings.selftest import SelftestSettings
from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.monitor.texts.moments import parse_moment_us
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.limits import MONITOR_STREAM, NAME_PATTERN, WINDOW_US
from hopwatch.probes.contract.segment import SCHEME as SPOOL

MAX_SHARDS: Final = 256
"""Maximum number of state keys that a window is split over."""
ALL_NODES: Final = ""
"""Key of the deadline that all nodes have which have none of their own."""
_LOST_IDS_LIMIT: Final = 1_000_000
"""Limit of ``max_lost_ids``: the ids of a node's loss in a window are one row of the store."""
_MAX_GROUP_CHARS: Final = 255


_RESERVED_STREAMS: Final = {
    MONITOR_STREAM: "the monitor's own pulse",
    OTHER: "streams that metrics do not show one by one",
    SELFTEST_STREAM: "the self-test",
}
"""Names that no stream may have, and what each is for."""


def check_stream_name(name: str) -> str:
    """Check the name of a stream; raise ValueError if it is invalid."""
    if name in _RESERVED_STREAMS:
        msg = f"the stream name {name!r} is reserved for {_RESERVED_STREAMS[name]}: choose another"
        raise ValueError(msg)
    if not NAME_PATTERN.fullmatch(name):
        msg = f"a stream's name is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _parse_chains(value: object) -> tuple[str, ...]:
    chains = (value,) if isinstance(value, str) else value
    if isinstance(chains, list | tuple) and chains and all(isinstance(chain, str) for chain in chains):
        return tuple(chains)
    msg = f'a path is a text such as "a -> b -> c", or a list of such texts; got {value!r:.80}'
    raise ValueError(msg)


def _check_chain(chain: str) -> str:
    """Check one chain by itself, so that each error has its own line."""
    Pathway.parse(chain)
    return chain


def _check_chains(chains: tuple[str, ...]) -> tuple[str, ...]:
    """Check all chains together."""
    Pathway.parse(chains)
    return chains


def _find_stamp_error(path: tuple[str, ...], node: str, side: str) -> InitErrorDetails | None:
    """Check the stamps of one node, so that each error has its own line; None if they are valid."""
    try:
        Pathway.parse(path, {node: side})
    except PathwayError as error:
        told = PydanticCustomError("value_error", "{error}", {"error": str(error)})
        return InitErrorDetails(type=told, loc=(node,), input=side)
    return None


def _check_node_name(name: str) -> str:
    if not NAME_PATTERN.fullmatch(name):
        msg = f"a node is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _check_shards(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SHARDS:
        return value
    msg = f"shards is a whole number from 1 to {MAX_SHARDS}, got {value!r:.80}"
    raise ValueError(msg)


def _check_max_lost_ids(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MAX_LOST_IDS <= value <= _LOST_IDS_LIMIT:
        return value
    msg = f"max_lost_ids is a whole number from {MAX_LOST_IDS:,} to {_LOST_IDS_LIMIT:,}, got {value!r:.80}"
    raise ValueError(msg)


def _parse_deadline(value: object) -> Mapping[str, int]:
    """Parse one deadline for all nodes, named by an empty text, or those of some nodes."""
    named = value if isinstance(value, Mapping) else {ALL_NODES: value}
    return {str(node): parse_positive_us(span) for node, span in named.items()}


def _check_group(name: str) -> str:
    if not (name.strip() and name.isprintable() and len(name) <= _MAX_GROUP_CHARS):
        msg = f"a consumer group is 1 to {_MAX_GROUP_CHARS} printable characters, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _find_topic_nodes(path: tuple[str, ...], node: str, topics: Mapping[str, str]) -> list[str]:
    """Return the nodes with an arrow to a node which write a known topic."""
    pathway = Pathway.parse(path)
    place = pathway.nodes.index(node)
    before = sorted({group.source for group in pathway.groups if place in group.targets})
    return [pathway.nodes[source] for source in before if pathway.nodes[source] in topics]


Chain = Annotated[str, AfterValidator(_check_chain)]


class TransportSettings(SettingsTable):
    """``[transport]``: source of the records of the probes."""

    url: Annotated[str, BeforeValidator(parse_transport_url)]
    records_per_trigger: PositiveInt | None = None
    kafka: KafkaSettings = KafkaSettings()

    @property
    def spool(self) -> Path:
        """The folder of the spool."""
        return Path(self.url.removeprefix(SPOOL))

    @property
    def kafka_place(self) -> KafkaPlace | None:
        """The topic; None if the transport is a spool."""
        return KafkaPlace.parse(self.url) if self.url.startswith(KAFKA) else None

    @property
    def access(self) -> KafkaAccess:
        """Authentication of Kafka clients."""
        return self.kafka.access


class StoreSettings(SettingsTable):
    """``[store]``: database of the results, time for retries of a failed transaction, and retention of digests."""

    url: Annotated[str, BeforeValidator(parse_store_url)]
    retry_for_us: PositiveDuration = Field(600_000_000, alias="retry_for")
    digests_for_us: PositiveDuration = Field(691_200_000_000, alias="digests_for")


class MonitorSettings(SettingsTable):
    """``[monitor]``: the Spark job: work folder, trigger interval and interval of its own pulse."""

    workdir: Annotated[Path, BeforeValidator(parse_folder)]
    master: str = "local"
    tasks: PositiveInt | None = None
    spark: Mapping[str, str] = {}
    trigger_us: PositiveDuration = Field(5_000_000, alias="trigger")
    pulse_us: PositiveDuration = Field(3_000_000, alias="pulse")


def _parse_minute(value: object) -> int:
    text = value.isoformat() if isinstance(value, datetime) else value
    told = "valid_from is a whole minute such as 2026-11-21T06:40:00Z"
    try:
        moment_us = parse_moment_us("valid_from", text) if isinstance(text, str) else None
    except ConfigurationError:
        moment_us = None
    if moment_us is None or moment_us % WINDOW_US:
        raise ValueError(f"{told}, got {value!r:.80}")
    return moment_us


class StreamSettings(SettingsTable):
    """``[streams.NAME]``: pathway of a stream, and the times by which its windows are judged. Spans are in µs."""

    path: Annotated[tuple[Chain, ...], BeforeValidator(_parse_chains), AfterValidator(_check_chains)]
    stamps: Mapping[str, str] = {}
    transit_us: Duration = Field(150_000_000, alias="transit")
    settle_us: Duration = Field(30_000_000, alias="settle")
    deadline_us: Annotated[Mapping[str, int], BeforeValidator(_parse_deadline)] = Field({}, alias="deadline")
    amend_for_us: Duration = Field(3_600_000_000, alias="amend_for")
    max_age_us: PositiveDuration = Field(86_400_000_000, alias="max_age")
    loss_alarm: Ratio = 0.01
    shards: Annotated[int, BeforeValidator(_check_shards)] = 1
    ignore_nodes: Annotated[
        tuple[Annotated[str, AfterValidator(_check_node_name)], ...], BeforeValidator(as_tuple)
    ] = ()
    order: bool = False
    max_lost_ids: Annotated[int, BeforeValidator(_check_max_lost_ids)] = MAX_LOST_IDS
    topics: Mapping[str, TopicUrl] = {}
    groups: Mapping[str, Annotated[str, AfterValidator(_check_group)]] = {}
    valid_from_us: Annotated[int | None, BeforeValidator(_parse_minute)] = Field(None, alias="valid_from")
    labels: Mapping[
        Annotated[str, AfterValidator(check_label_name)], Annotated[str, AfterValidator(check_label_value)]
    ] = {}

    @field_validator("deadline_us")
    @classmethod
    def _check_deadline(cls, named: Mapping[str, int], info: ValidationInfo) -> Mapping[str, int]:
        path, transit_us = info.data.get("path"), info.data.get("transit_us")
        longest_us = max(named.values(), default=0)
        if transit_us is not None and longest_us > transit_us:
            raise ValueError(
                f"a deadline is at most transit, which is {format_duration_us(transit_us)}, got "
                f"{format_duration_us(longest_us)}: what is missing for longer is lost"
            )
        if path:
            nodes = Pathway.parse(path, info.data.get("stamps") or {}).nodes
            for node in (node for node in named if node != ALL_NODES and node not in nodes):
                msg = f"deadlines are of nodes of the path that stamp ids, got {node!r:.80}: name one of "
                raise ValueError(msg + ", ".join(nodes))
        return named

    @field_validator("topics")
    @classmethod
    def _check_topics(cls, topics: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        path = info.data.get("path")
        nodes = Pathway.parse(path).nodes if path else ()
        unknown = sorted(set(topics) - set(nodes)) if path else []
        if unknown:
            msg = f"topics are of nodes of the path, got {unknown[0]!r:.80}: name one of {', '.join(nodes)}"
            raise ValueError(msg)
        return topics

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, groups: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        path, topics = info.data.get("path"), info.data.get("topics")
        if not path or topics is None:
            return groups
        nodes = Pathway.parse(path).nodes
        for node in groups:
            if node not in nodes:
                msg = f"groups are of nodes of the path, got {node!r:.80}: name one of {', '.join(nodes)}"
                raise ValueError(msg)
            if not _find_topic_nodes(path, node, topics):
                msg = f"{node!r} has a group, and no node before it has a topic: name what the group reads in topics"
                raise ValueError(msg)
        return groups

    @field_validator("ignore_nodes")
    @classmethod
    def _check_ignored_nodes(cls, ignored: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        path = info.data.get("path")
        both = sorted(set(ignored) & set(Pathway.parse(path).nodes)) if path else []
        if both:
            msg = (
                f"ignore_nodes are nodes that the path does not have, got {both[0]!r}, which it has: take it out of one"
            )
            raise ValueError(msg)
        return ignored

    @field_validator("stamps")
    @classmethod
    def _check_stamps(cls, stamps: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        # An error in the path itself is reported already.
        path = info.data.get("path")
        misfits = [misfit for node, side in stamps.items() if path and (misfit := _find_stamp_error(path, node, side))]
        if misfits:
            raise ValidationError.from_exception_data("stamps", misfits)
        if path:
            # Nodes that are right one by one may not be so together.
            Pathway.parse(path, stamps)
        return stamps

    @cached_property
    def pathway(self) -> Pathway:
        """The graph that path and stamps declare."""
        return Pathway.parse(self.path, self.stamps)

    @property
    def deadlines(self) -> tuple[tuple[str, int], ...]:
        """Deadlines of nodes, in the order of the path, µs."""
        spans = ((node, self.deadline_us.get(node, self.deadline_us.get(ALL_NODES))) for node in self.pathway.nodes)
        return tuple((node, span_us) for node, span_us in spans if span_us is not None)

    def list_group_topics(self) -> Iterator[tuple[str, str]]:
        """Yield each node that has a consumer group, with each node before it whose topic the group reads."""
        for node in Pathway.parse(self.path).nodes:
            if node in self.groups:
                yield from ((node, source) for source in _find_topic_nodes(self.path, node, self.topics))

    @property
    def rules(self) -> StreamConfig:
        """Rules of the stream for the job."""
        terms = WindowPolicy(self.transit_us, self.settle_us, self.amend_for_us, self.max_age_us)
        return StreamConfig(
            self.pathway,
            terms,
            self.shards,
            self.ignore_nodes,
            self.order,
            self.max_lost_ids,
            deadlines=self.deadlines,
            valid_from_us=self.valid_from_us or 0,
        )


def _copy_details(details: ErrorDetails) -> InitErrorDetails:
    """Copy the details of an error, to raise it together with others."""
    kept = ("type", "loc", "input", "ctx")
    return cast("InitErrorDetails", {name: value for name, value in details.items() if name in kept})


class Settings(BaseSettings):
    """All settings, merged from their layers and checked; nothing is read from the process environment."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    transport: TransportSettings
    store: StoreSettings
    monitor: MonitorSettings
    streams: Mapping[Annotated[str, AfterValidator(check_stream_name)], StreamSettings] = {}
    alerts: AlertsSettings = AlertsSettings()
    metrics: MetricsSettings = MetricsSettings()
    dashboard: DashboardSettings = DashboardSettings()
    gate: GateSettings = GateSettings()
    deliver: Mapping[DeliveryName, DeliverySettings] = {}
    api: ApiSettings = ApiSettings()
    completeness: Mapping[ContractName, CompletenessSettings] = {}
    results: ResultsSettings | None = None
    otlp: OtlpSettings | None = None
    selftest: SelftestSettings | None = None

    def __init__(self, *layers: Mapping[str, Any]) -> None:
        """Merge the layers, the first wins key by key.

        Raises:
            pydantic.ValidationError: a key is unknown or missing, or its value is invalid.
        """
        super().__init__(**{str(rank): layer for rank, layer in enumerate(layers)})  # type: ignore[arg-type]

    @model_validator(mode="wrap")
    @classmethod
    def _check_all(cls, values: Mapping[str, Any], check: ModelWrapValidatorHandler[Self]) -> Self:
        found = cross_checks.find_mismatches(values)
        try:
            settings = check(values)
        except ValidationError as error:
            raise error_details.build_error(cls.__name__, [*map(_copy_details, error.errors()), *found]) from None
        if found:
            raise error_details.build_error(cls.__name__, found)
        return settings

    def stream_configs(self) -> dict[str, StreamConfig]:
        """Return the configuration of each stream, as the job takes it; that of the self-test is one of them."""
        own = {} if self.selftest is None else {SELFTEST_STREAM: SELFTEST_CONFIG}
        return {name: stream.rules for name, stream in self.streams.items()} | own

    @property
    def stream_labels(self) -> dict[str, Mapping[str, str]]:
        """Labels of each stream by its name."""
        return {name: stream.labels for name, stream in self.streams.items()}

    def check_stream(self, stream: str | None, *, with_selftest: bool = False) -> None:
        """Check a stream that was named on the command line; none means all.

        That of the self-test has windows, and no keys: ``with_selftest`` takes it, too.

        Raises:
            ConfigurationError: the configuration has no such stream.
        """
        known = self.stream_configs() if with_selftest else self.streams
        if stream is not None and stream not in known:
            names = ", ".join(known) or "none"
            raise ConfigurationError(f"--stream names {stream!r}, the configuration has: {names}")

    def require_contract(self, name: str) -> CompletenessSettings:
        """Return the contract of a name.

        Raises:
            ConfigurationError: the configuration has no such contract.
        """
        found = self.completeness.get(name)
        if found is None:
            names = ", ".join(self.completeness) or "none"
            raise ConfigurationError(f"there is no [completeness.{name:.80}], the configuration has: {names}")
        return found

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the layers as the only sources."""
        return tuple(InitSettingsSource(settings_cls, layer) for layer in init_settings().values())
