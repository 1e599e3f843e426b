"""``[alerts]``: a table for each kind of rule, its defaults and its bounds. Spans are in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details, receivers
from hopwatch.monitor.settings.channels import AnyChannel, ChannelName
from hopwatch.monitor.settings.fields import (
    NAME_PATTERN,
    Duration,
    Names,
    PositiveDuration,
    PositiveInt,
    Ratio,
    Severity,
    as_tuple,
    name_validator,
)
from hopwatch.monitor.settings.labels import check_label_name
from hopwatch.monitor.settings.table import SettingsTable

MINUTE_US: Final = 60_000_000
MAX_WINDOW_US: Final = 30 * 86_400_000_000
MAX_RULES: Final = 100
MAX_RATE: Final = 1_000_000
MAX_SCORE: Final = 1_000
LABELS: Final = ("team", "service", "owner", "environment", "tier")


def _check_installation(name: str) -> str:
    if name and not NAME_PATTERN.fullmatch(name):
        msg = f'an installation is 1 to 64 of the characters a-z0-9_-, or "" for the only one, got {name!r:.80}'
        raise ValueError(msg)
    return name


def _check_link(value: str) -> str:
    try:
        return value and receivers.check_url(value)
    except ValueError:
        msg = f'this is a URL such as "http://127.0.0.1:8501/", or "" for none; got {value!r:.80}'
        raise ValueError(msg) from None


def _check_objective(value: float) -> float:
    if value in {0.0, 1.0}:
        msg = f"an objective is a ratio between 0 and 1, such as 0.999, got {value!r}"
        raise ValueError(msg)
    return value


def _check_rate(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_RATE:
        return float(value)
    msg = f"a burn rate is a number over 0 and up to {MAX_RATE:,}, got {value!r:.80}"
    raise ValueError(msg)


def _check_records(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    msg = f"this is a whole number from 0, got {value!r:.80}"
    raise ValueError(msg)


def _check_score(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SCORE:
        return float(value)
    msg = f"a score is a number from 0 to {MAX_SCORE}, got {value!r:.80}"
    raise ValueError(msg)


class RuleTable(SettingsTable):
    """Keys of every rule."""

    kind: str
    name: Annotated[str, AfterValidator(name_validator("a rule's name"))] = ""
    enabled: bool = True
    labels: Mapping[str, str] = {}
    runbook: str = ""

    @property
    def display_name(self) -> str:
        """Name of the rule, by default its kind."""
        return self.name or self.kind


class StreamRule(RuleTable):
    """Keys of every rule about streams; without ``streams`` it applies to all of them."""

    for_us: Duration = Field(0, alias="for")
    keep_firing_for_us: Duration = Field(5 * MINUTE_US, alias="keep_firing_for")
    streams: Names = ()


class LossRule(StreamRule):
    """Ratio of messages surely lost at a node, or end to end; the default threshold is ``loss_alarm`` of the stream.

    With ``overdue`` it reads windows that are not final, too, by the messages that are overdue in them.
    """

    kind: Literal["loss"] = "loss"
    severity: Severity = "page"
    threshold: Ratio | None = None
    overdue: bool = True
    least_messages: PositiveInt = 1
    nodes: Names = ()


class LagRule(StreamRule):
    """The 95th percentile of the lag at a node over a span; ``transit`` of the stream by default.

    With ``early`` it reads windows that are not final, too, as soon as enough of their messages are late.
    """

    kind: Literal["lag"] = "lag"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold_us: PositiveDuration | None = Field(None, alias="threshold")
    stamp: Literal["both", "in", "out"] = "both"
    early: bool = True
    least_messages: PositiveInt = 1
    nodes: Names = ()


class EndToEndLagRule(StreamRule):
    """The 95th percentile of the lag at the ends of the pathway over a span; ``transit`` by default."""

    kind: Literal["end_to_end_lag"] = "end_to_end_lag"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold_us: PositiveDuration | None = Field(None, alias="threshold")
    least_messages: PositiveInt = 1


class UnknownRule(StreamRule):
    """Windows with the verdict UNKNOWN for longer than a span."""

    kind: Literal["unknown"] = "unknown"
    severity: Severity = "ticket"
    for_us: Duration = Field(15 * MINUTE_US, alias="for")


class SilentRule(StreamRule):
    """A node, or a whole stream, whose probes are all silent."""

    kind: Literal["silent"] = "silent"
    severity: Severity = "ticket"
    for_us: Duration = Field(10 * MINUTE_US, alias="for")
    nodes: Names = ()


class OutlierRule(StreamRule):
    """A series that its detector calls an outlier, with at least this score."""

    kind: Literal["outlier"] = "outlier"
    severity: Severity = "ticket"
    threshold: Annotated[float, BeforeValidator(_check_score)] = 0.0
    nodes: Names = ()


class ProbeDropsRule(StreamRule):
    """Ratio of observations that probes dropped."""

    kind: Literal["probe_drops"] = "probe_drops"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold: Ratio = 0.01
    nodes: Names = ()


class RejectedRule(StreamRule):
    """Ratio of messages that a node rejected as bad."""

    kind: Literal["rejected"] = "rejected"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold: Ratio = 0.05
    least_messages: PositiveInt = 1
    nodes: Names = ()


class DeferredRule(StreamRule):
    """Ratio of messages that a node keeps for a later try."""

    kind: Literal["deferred"] = "deferred"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold: Ratio = 0.05
    least_messages: PositiveInt = 1
    nodes: Names = ()


class DeferredAgeRule(StreamRule):
    """Age of the oldest message of a stream that waits for a later try."""

    kind: Literal["deferred_age"] = "deferred_age"
    severity: Severity = "ticket"
    threshold_us: PositiveDuration = Field(30 * MINUTE_US, alias="threshold")


class ForecastRule(StreamRule):
    """A lag at a node that is sure to reach a threshold within a span, by the trend of the last hour."""

    kind: Literal["forecast"] = "forecast"
    enabled: bool = False
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold_us: PositiveDuration | None = Field(None, alias="threshold")
    within_us: PositiveDuration = Field(60 * MINUTE_US, alias="within")
    stamp: Literal["both", "in", "out"] = "both"
    nodes: Names = ()


class ClockSkewRule(StreamRule):
    """Ratio of stamps that are earlier than the message itself."""

    kind: Literal["clock_skew"] = "clock_skew"
    severity: Severity = "ticket"
    for_us: Duration = Field(5 * MINUTE_US, alias="for")
    threshold: Ratio = 0.01
    nodes: Names = ()


class SetAsideRule(RuleTable):
    """Number of transport records that could not be read within a span; it concerns the monitor itself."""

    kind: Literal["set_aside"] = "set_aside"
    severity: Severity = "ticket"
    threshold: Annotated[int, BeforeValidator(_check_records)] = 0
    over_us: PositiveDuration = Field(10 * MINUTE_US, alias="over")
    keep_firing_for_us: Duration = Field(5 * MINUTE_US, alias="keep_firing_for")


class SelftestRule(RuleTable):
    """Number of minutes of the self-test that were not measured as they were injected, within a span."""

    kind: Literal["selftest"] = "selftest"
    severity: Severity = "page"
    threshold: Annotated[int, BeforeValidator(_check_records)] = 0
    over_us: PositiveDuration = Field(10 * MINUTE_US, alias="over")
    keep_firing_for_us: Duration = Field(5 * MINUTE_US, alias="keep_firing_for")


class BurnWindow(SettingsTable):
    """Two spans in both of which the budget burns faster than a rate."""

    rate: Annotated[float, BeforeValidator(_check_rate)]
    long_us: PositiveDuration = Field(alias="long")
    short_us: PositiveDuration = Field(alias="short")
    severity: Severity

    @model_validator(mode="after")
    def _check_spans(self) -> Self:
        if self.short_us > self.long_us or self.long_us > MAX_WINDOW_US:
            msg = "short is at most as long as long, and long at most 30d"
            raise ValueError(msg)
        if self.short_us % MINUTE_US or self.long_us % MINUTE_US:
            msg = 'long and short are whole minutes, such as "1h" and "5m"'
            raise ValueError(msg)
        return self


def _burn_window(rate: float, long_minutes: int, short_minutes: int, severity: Severity) -> BurnWindow:
    spans = {"long": f"{long_minutes}m", "short": f"{short_minutes}m"}
    return BurnWindow.model_validate({"rate": rate, "severity": severity} | spans)


class BurnRateRule(StreamRule):
    """The rate at which an objective's budget burns: 1 spends all of it just by the end of the objective's span.

    Windows of one severity make one alert: the first of them that is exceeded makes it fire.
    """

    kind: Literal["burn_rate"] = "burn_rate"
    of: Literal["loss", "lag"] = "loss"
    objective: Annotated[Ratio, AfterValidator(_check_objective)] = 0.999
    target_us: PositiveDuration | None = Field(None, alias="target")
    windows: Annotated[tuple[BurnWindow, ...], BeforeValidator(as_tuple)] = (
        _burn_window(14.4, 60, 5, "page"),
        _burn_window(6, 360, 30, "page"),
        _burn_window(1, 3 * 1_440, 360, "ticket"),
    )
    least_messages: PositiveInt = 100

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.of == "lag") != (self.target_us is not None):
            msg = 'an objective of lag has a target, such as target = "500ms"; one of loss has none'
            raise ValueError(msg)
        return self


class HeartbeatRule(RuleTable):
    """An alert that always fires: when it stops arriving, the monitor or the notification path is down."""

    kind: Literal["heartbeat"] = "heartbeat"
    severity: Severity = "ticket"


AnyRule = (
    LossRule
    | LagRule
    | EndToEndLagRule
    | UnknownRule
    | SilentRule
    | OutlierRule
    | ProbeDropsRule
    | RejectedRule
    | DeferredRule
    | DeferredAgeRule
    | ForecastRule
    | ClockSkewRule
    | SetAsideRule
    | SelftestRule
    | BurnRateRule
    | HeartbeatRule
)
KINDS: Final[Mapping[str, type[AnyRule]]] = {of.model_fields["kind"].default: of for of in get_args(AnyRule)}


LabelNames = Annotated[Names, AfterValidator(lambda names: tuple(map(check_label_name, names)))]


class AlertsSettings(SettingsTable):
    """``[alerts]``: rules, their labels, links for people, and notification channels.

    There is a default rule of each kind; a configured rule of the same name replaces it.
    """

    enabled: bool = True
    defaults: bool = True
    labels: LabelNames = LABELS
    dashboard: Annotated[str, AfterValidator(_check_link)] = ""
    runbooks: str = "docs/runbooks"
    installation: Annotated[str, AfterValidator(_check_installation)] = ""
    rules: Annotated[
        tuple[Annotated[AnyRule, Field(discriminator="kind")], ...],
        BeforeValidator(as_tuple),
        Field(max_length=MAX_RULES),
    ] = ()
    channels: Mapping[ChannelName, Annotated[AnyChannel, Field(discriminator="kind")]] = {}

    @property
    def active_rules(self) -> tuple[AnyRule, ...]:
        """Enabled rules, the default ones first."""
        if not self.enabled:
            return ()
        named = {rule.display_name for rule in self.rules}
        usual = [of.model_validate({}) for kind, of in KINDS.items() if kind not in named] if self.defaults else []
        return tuple(rule for rule in (*usual, *self.rules) if rule.enabled)

    @property
    def receiving_channels(self) -> tuple[str, ...]:
        """Names of the channels that receive alerts directly: enabled, with at least one severity."""
        return tuple(name for name, channel in self.channels.items() if channel.enabled and channel.severities)

    @property
    def longest_budget_us(self) -> int:
        """The longest span that a budget is summed over."""
        burning = [rule for rule in self.active_rules if isinstance(rule, BurnRateRule)]
        return max((window.long_us for rule in burning for window in rule.windows), default=0)


def check_rules(
    rules: Mapping[int, AnyRule], labels: Sequence[str] | None, nodes: Mapping[str, Sequence[str] | None]
) -> list[InitErrorDetails]:
    """Check rules, by their places, against the streams, their nodes, the labels and each other.

    The labels are None where ``[alerts] labels`` is wrong, the nodes of a stream where its path is.
    """
    found: list[InitErrorDetails] = []
    names: set[str] = set()
    for place, rule in rules.items():
        where = ("rules", place, rule.kind)
        if rule.display_name in names:
            told = f"another rule is called {rule.display_name!r} already: give this one a name of its own"
            found.append(error_details.error_at((*where, "name"), rule.display_name, told))
        names.add(rule.display_name)
        more = '; [alerts] labels = ["…"] lists those that there are'
        if labels is not None:
            found += error_details.find_unknown_names((*where, "labels"), list(rule.labels), labels, "label", more)
        if not isinstance(rule, StreamRule):
            continue
        found += error_details.find_unknown_names((*where, "streams"), rule.streams, list(nodes), "stream")
        asked = [nodes[stream] for stream in rule.streams or nodes if stream in nodes]
        if None in asked:
            continue
        known = list(dict.fromkeys(node for of_stream in asked for node in of_stream or ()))
        found += error_details.find_unknown_names((*where, "nodes"), getattr(rule, "nodes", ()), known, "node")
    return found
