"""``[gate]``: entrances of streams, rules for their events, and producers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import InitErrorDetails, SchemaError, SchemaValidator, core_schema

from hopwatch.monitor.settings import error_details
from hopwatch.monitor.settings.durations import format_duration_us
from hopwatch.monitor.settings.fields import Names, PositiveDuration, PositiveInt, as_tuple, name_validator
from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.limits import NAME_PATTERN
from hopwatch.probes.contract.segment import SCHEME as SPOOL

DEFAULT_NODE: Final = "gate"
"""Default node of the entrance in the path of a stream."""
MAX_TOKENS: Final = 2
"""Tokens of one producer: two during a rotation."""
MAX_RULES: Final = 256
MIN_THROTTLE_TARGET_US: Final = 2_000_000
"""Shortest target of a throttle: it looks once a second, and consumers commit every few."""
_TOKEN_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[\])?(?:\.[A-Za-z_][A-Za-z0-9_]*(?:\[\])?)*")


def parse_outlet_url(value: object) -> str:
    """Parse the URL of an outlet for events: ``spool:`` and a folder, or a Kafka topic.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, str) and value.startswith(SPOOL) and value != SPOOL:
        return value
    if isinstance(value, str) and value.startswith(KAFKA):
        if not value.removeprefix(KAFKA).partition("/")[2]:
            msg = f'events go to a topic of their own, "{KAFKA}HOST:PORT/TOPIC"; {value!r:.80} names none'
            raise ValueError(msg)
        return str(KafkaPlace.parse(value))
    msg = f'events go to a topic, "{KAFKA}HOST:PORT/TOPIC", or to a spool, "spool:FOLDER"; got {value!r:.80}'
    raise ValueError(msg)


def topic_url_validator(what: str) -> Callable[[object], str]:
    """Return a validator of URLs of topics; ``what`` is the sentence that its error message begins with."""

    def parse_topic_url(value: object) -> str:
        url = parse_outlet_url(value)
        if not url.startswith(KAFKA):
            msg = f'{what}, "{KAFKA}HOST:PORT/TOPIC"; got {url!r:.80}'
            raise ValueError(msg)
        return url

    return parse_topic_url


def _check_target(span_us: int) -> int:
    if span_us < MIN_THROTTLE_TARGET_US:
        msg = f"a throttle's target is at least 2s, got {format_duration_us(span_us)}"
        raise ValueError(msg)
    return span_us


def _check_node(name: str) -> str:
    if not NAME_PATTERN.fullmatch(name):
        msg = f"a node's name is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _check_field(name: str) -> str:
    if not _FIELD_NAME.fullmatch(name):
        msg = f"a field is named such as price, customer.name or lines[].price, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _check_pattern(pattern: str) -> str:
    try:
        for text in (pattern, rf"\A(?:{pattern})\z"):
            SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
    except SchemaError as error:
        told = str(error).strip().splitlines()[-1]
        msg = f"a pattern is one of Rust's regex, which has no look-around; got {pattern!r:.80}: {told:.120}"
        raise ValueError(msg) from None
    return pattern


def _parse_tokens(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and 0 < len(value) <= MAX_TOKENS:
        if all(isinstance(one, str) and _TOKEN_HASH.fullmatch(one) for one in value):
            return tuple(value)
        # A wrong value may be the token itself, so it is not shown.
        msg = 'a token stands here as its hash, "sha256:…", which "hopwatch gate token" writes; got something else'
        raise ValueError(msg)
    msg = f"this is a list of one or {MAX_TOKENS} hashes of tokens, which 'hopwatch gate token' writes"
    raise ValueError(msg)


def _require_producer(value: object) -> object:
    """Require at least one producer in the table; without the table anybody may send."""
    if value == {}:
        msg = "it names no producer, and without it anyone may send: name a producer, or leave the table out"
        raise ValueError(msg)
    return value


OutletUrl = Annotated[str, BeforeValidator(parse_outlet_url)]
TokenHashes = Annotated[tuple[str, ...], BeforeValidator(_parse_tokens)]
FieldName = Annotated[str, AfterValidator(_check_field)]
Action = Literal["reject", "quarantine", "note"]


class ThrottleSettings(SettingsTable):
    """``[gate.streams.NAME.throttle]``: admit fewer events while they wait too long for a consumer group.

    ``topic`` is where the group reads; by default where the entrance writes. With ``dry_run`` nothing is refused.
    """

    group: Annotated[str, Field(min_length=1, max_length=255)]
    topic: Annotated[str, BeforeValidator(topic_url_validator("a consumer group reads a topic"))] | None = None
    target_us: Annotated[PositiveDuration, AfterValidator(_check_target)] = Field(alias="target")
    dry_run: bool = False


class EntranceSettings(SettingsTable):
    """``[gate.streams.NAME]``: outlets for the events of a stream, and the subject of their schema.

    ``unknown_schema`` is what ``hopwatch validate`` does with a record whose writer's schema is not registered. With
    ``hold`` it waits in the topic ``waiting``, for ``hold_for_us`` at the longest.
    """

    to: OutletUrl
    rejected: OutletUrl | None = None
    subject: str = ""
    node: Annotated[str, AfterValidator(_check_node)] = DEFAULT_NODE
    unknown_schema: Literal["reject", "stamp", "hold"] = "reject"
    waiting: OutletUrl | None = None
    hold_for_us: PositiveDuration = Field(3_600_000_000, alias="hold_for")
    throttle: ThrottleSettings | None = None

    def rejected_url(self, stream: str) -> str:
        """Return the URL for rejected events; the default is ``<stream>.rejected`` beside the outlet."""
        if self.rejected is not None:
            return self.rejected
        if self.to.startswith(KAFKA):
            return self._build_topic_url(f"{stream}.rejected")
        return f"{self.to.rstrip('/').rpartition('/')[0]}/{stream}.rejected"

    def waiting_url(self, stream: str) -> str:
        """Return the URL of the topic of records that wait; the default is ``<stream>.waiting`` beside the outlet."""
        return self.waiting or self._build_topic_url(f"{stream}.waiting")

    def find_throttle_place(self) -> KafkaPlace | None:
        """Return the topic whose consumers a throttle looks at; None if none is named, and the entrance writes none."""
        url = (self.throttle and self.throttle.topic) or self.to
        return KafkaPlace.parse(url) if url.startswith(KAFKA) else None

    def _build_topic_url(self, topic: str) -> str:
        return f"{KAFKA}{KafkaPlace.parse(self.to).brokers}/{topic}"


class RuleSettings(SettingsTable):
    """Keys of all ``[[gate.rules]]``."""

    subject: str
    action: Action = "reject"
    name: str = ""

    @property
    def display_name(self) -> str:
        """Name of the rule in reports; by default its kind and field."""
        kind, field = getattr(self, "kind", ""), getattr(self, "field", "")
        return self.name or f"{kind} {field}".strip()


class RequiredRule(RuleSettings):
    """A field is present and not null."""

    kind: Literal["required"] = "required"
    field: FieldName


class RangeRule(RuleSettings):
    """A number lies between ``min`` and ``max``, one of which may be missing."""

    kind: Literal["range"] = "range"
    field: FieldName
    min: float | None = None
    max: float | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if any(bound is not None and not math.isfinite(bound) for bound in (self.min, self.max)):
            msg = "min and max are numbers, not nan or inf: leave one out for no bound"
            raise ValueError(msg)
        if self.min is None and self.max is None:
            msg = "a range has min, max or both"
            raise ValueError(msg)
        if self.min is not None and self.max is not None and self.min > self.max:
            msg = f"min is at most max, got {self.min:g} and {self.max:g}"
            raise ValueError(msg)
        return self


class PatternRule(RuleSettings):
    """A text matches a pattern as a whole."""

    kind: Literal["pattern"] = "pattern"
    field: FieldName
    pattern: Annotated[str, AfterValidator(_check_pattern)]


class EnumerationRule(RuleSettings):
    """A value is one of a list."""

    kind: Literal["enumeration"] = "enumeration"
    field: FieldName
    values: Annotated[tuple[str | int | float | bool, ...], BeforeValidator(as_tuple), Field(min_length=1)]


class FreshnessRule(RuleSettings):
    """An event arrives soon after its event time."""

    kind: Literal["freshness"] = "freshness"
    within_us: PositiveDuration = Field(alias="within")


class UniquenessRule(RuleSettings):
    """A value is unique within a span."""

    kind: Literal["uniqueness"] = "uniqueness"
    field: FieldName
    within_us: PositiveDuration = Field(600_000_000, alias="within")


AnyRule = RequiredRule | RangeRule | PatternRule | EnumerationRule | FreshnessRule | UniquenessRule


KINDS: Final[Mapping[str, type[AnyRule]]] = {of.model_fields["kind"].default: of for of in get_args(AnyRule)}


class ProducerSettings(SettingsTable):
    """``[gate.producers.NAME]``: tokens, streams and rate limits of a producer.

    ``subjects`` lists more subjects that the producer may register schemas for, beside those of its streams.
    """

    tokens: TokenHashes
    streams: Names = ()
    subjects: Names = ()
    events_per_second: PositiveInt | None = None
    bytes_per_second: PositiveInt | None = None


class TlsSettings(SettingsTable):
    """``[gate.tls]``, ``[api.tls]``: files in PEM; with ``client_ca`` clients need certificates of that authority."""

    certificate: str
    key: str
    client_ca: str = ""


class RegistrySettings(SettingsTable):
    """``[gate.registry]``: topic that each registration is written to."""

    changes_topic: Annotated[str, BeforeValidator(topic_url_validator("registrations go to a topic"))]


class GateSettings(SettingsTable):
    """``[gate]``: all tables of the gate."""

    streams: Mapping[str, EntranceSettings] = {}
    rules: Annotated[
        tuple[Annotated[AnyRule, Field(discriminator="kind")], ...],
        BeforeValidator(as_tuple),
        Field(max_length=MAX_RULES),
    ] = ()
    producers: Annotated[
        Mapping[Annotated[str, AfterValidator(name_validator("a producer"))], ProducerSettings],
        BeforeValidator(_require_producer),
    ] = {}
    tls: TlsSettings | None = None
    registry: RegistrySettings | None = None


def check_entrances(
    entrances: Mapping[str, EntranceSettings], nodes: Mapping[str, Sequence[str] | None], transport: str | None
) -> list[InitErrorDetails]:
    """Check entrances against the URL of the transport, and the streams and their nodes.

    The nodes of a stream are None where its path is wrong.
    """
    found: list[InitErrorDetails] = []
    for stream, entrance in entrances.items():
        if stream not in nodes:
            told = f"there is no [streams.{stream}], and the monitor would not know its messages: declare its path"
            found.append(error_details.error_at(("streams", stream), stream, told))
        elif transport is not None and transport in (entrance.to, entrance.rejected_url(stream)):
            told = "events go to a place of their own, got that of the probes' records, [transport] url"
            found.append(error_details.error_at(("streams", stream, "to"), entrance.to, told))
        elif entrance.throttle is not None and entrance.find_throttle_place() is None:
            told = f'a throttle looks at a topic, and events go to a spool: name it, topic = "{KAFKA}HOST:PORT/TOPIC"'
            found.append(
                error_details.error_at(("streams", stream, "throttle", "group"), entrance.throttle.group, told)
            )
        elif entrance.rejected_url(stream) == entrance.to:
            told = "what may not enter goes to a place of its own, got the one that to names"
            found.append(error_details.error_at(("streams", stream, "rejected"), entrance.to, told))
        elif (known := nodes[stream]) is not None and entrance.node not in known:
            told = f'the path of {stream} has no node {entrance.node!r}: let it begin with "{entrance.node} -> …"'
            found.append(error_details.error_at(("streams", stream, "node"), entrance.node, told))
    return found


def check_gate_rules(rules: Mapping[int, AnyRule], subjects: Sequence[str]) -> list[InitErrorDetails]:
    """Check that the subject of each rule, by its place, is the subject of an entrance."""
    found: list[InitErrorDetails] = []
    for place, rule in rules.items():
        if rule.subject not in subjects:
            nearest = error_details.suggest_names(rule.subject, subjects)
            told = f"no stream of the gate has the subject {rule.subject!r:.80}{nearest}"
            found.append(error_details.error_at(("rules", place, rule.kind, "subject"), rule.subject, told))
    return found


def check_producers(producers: Mapping[str, ProducerSettings], entrances: Sequence[str]) -> list[InitErrorDetails]:
    """Check producers against each other and the streams that have an entrance."""
    found: list[InitErrorDetails] = []
    hashes = [one for producer in producers.values() for one in producer.tokens]
    for name, producer in producers.items():
        if any(hashes.count(one) > 1 for one in producer.tokens):
            told = "a token belongs to one producer, and is named once: make another with 'hopwatch gate token'"
            found.append(error_details.error_at(("producers", name, "tokens"), "", told))
        where = ("producers", name, "streams")
        found += error_details.find_unknown_names(where, producer.streams, entrances, "entrance to a stream")
    return found


def resolve_paths(gate: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the table with its relative paths made absolute from ``base``."""
    made = dict(gate)
    if isinstance(made.get("streams"), Mapping):
        made["streams"] = {
            name: _resolve_keys(table, ("to", "rejected"), SPOOL, base) for name, table in made["streams"].items()
        }
    return resolve_tls(made, base)


def resolve_tls(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return a table with the files of its ``tls`` made absolute from ``base``."""
    tls = {"tls": _resolve_keys(table["tls"], ("certificate", "key", "client_ca"), "", base)} if "tls" in table else {}
    return {**table, **tls}


def _resolve_keys(table: object, keys: Sequence[str], scheme: str, base: Path) -> object:
    if not isinstance(table, Mapping):
        return table
    made = dict(table)
    for key in keys:
        said = made.get(key)
        path = said.removeprefix(scheme) if isinstance(said, str) and said.startswith(scheme) else ""
        if path:
            made[key] = f"{scheme}{base / path}"
    return made
