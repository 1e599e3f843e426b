"""Messages that spans tell of: those that a service sent, and those that it took in, by the messaging conventions.

Names of attributes changed over the years, and both those of today and those of before are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hopwatch.probes.contract.limits import MAX_LABEL_CHARS, NAME_PATTERN
from hopwatch.probes.event_times import MAX_EVENT_US
from hopwatch.probes.messaging_attributes import DESTINATION_NAMES, TEMPORARY
from hopwatch.probes.packing import Labels

CONTEXT_BYTES: Final = 24
"""Length of a creation context: 16 bytes of the trace, 8 of the span."""

_OPERATION: Final = ("messaging.operation.type", "messaging.operation")
_LABELS: Final = {
    "partition": (
        "messaging.destination.partition.id",
        "messaging.kafka.destination.partition",
        "messaging.kafka.partition",
    ),
    "group": ("messaging.consumer.group.name", "messaging.kafka.consumer.group"),
}
_KNOWS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200


class SentMessage(NamedTuple):
    """Message that a producer span sent; times in µs since 1970, ``left_us`` None where the span failed."""

    context: bytes
    destination: str
    event_us: int
    left_us: int | None
    labels: Labels


class TakenMessages(NamedTuple):
    """Messages that a consumer span took in, by their creation contexts; times in µs since 1970.

    ``handled_us`` is None where the span has not handled them; ``unnamed`` counts messages without a context.
    """

    contexts: tuple[bytes, ...]
    unnamed: int
    operation: str
    arrived_us: int
    handled_us: int | None
    labels: Labels


class MessageSpans(NamedTuple):
    """Messages of some spans; ``untimed`` counts those whose spans have no times that can be."""

    sent: list[SentMessage]
    taken: list[TakenMessages]
    untimed: int


def read_message_spans(spans: Iterable[Span]) -> MessageSpans:
    """Read the messages of some spans; spans of anything else tell of none."""
    found = MessageSpans([], [], 0)
    untimed = 0
    for span in spans:
        if span.kind not in (Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER):
            continue
        attributes = _read_attributes(span.attributes)
        if any(attributes.get(name) for name in TEMPORARY):
            continue
        destination = _read_name(attributes)
        is_timed = 0 < span.start_time_unix_nano <= span.end_time_unix_nano < MAX_EVENT_US * 1_000
        if span.kind == Span.SPAN_KIND_PRODUCER:
            if not is_timed:
                untimed += 1
            elif destination is not None and (sent := _read_sent(span, destination, attributes)) is not None:
                found.sent.append(sent)
            continue
        taken = _read_taken(span, destination, attributes)
        if taken is None:
            continue
        if not is_timed:
            untimed += len(taken.contexts) + taken.unnamed
            continue
        found.taken.append(taken)
    return found._replace(untimed=untimed)


def read_text(attributes: Iterable[KeyValue], name: str) -> str | None:
    """Return an attribute that is text; None without it."""
    return next((one.value.string_value for one in attributes if one.key == name and one.value.string_value), None)


def _read_sent(span: Span, destination: str, attributes: dict[str, Any]) -> SentMessage | None:
    if len(span.trace_id) + len(span.span_id) != CONTEXT_BYTES:
        return None
    # Where messages have creation contexts of their own, the span that sends them links those.
    if span.links and _read_operation(attributes, span.name) != "create":
        return None
    has_failed = span.status.code == Status.STATUS_CODE_ERROR
    left_us = None if has_failed else span.end_time_unix_nano // 1_000
    context = span.trace_id + span.span_id
    return SentMessage(context, destination, span.start_time_unix_nano // 1_000, left_us, _read_labels(attributes))


def _read_taken(span: Span, destination: str | None, attributes: dict[str, Any]) -> TakenMessages | None:
    contexts = _read_contexts(span)
    is_local = not span.links and bool(span.flags & _KNOWS_REMOTE) and not span.flags & _IS_REMOTE
    unnamed = span.dropped_links_count
    if not contexts and not unnamed:
        # The span of a poll that took nothing, or whose messages have spans of their own, has no destination; one that
        # stands in another consumer span is a part of it.
        if destination is None or is_local:
            return None
        unnamed = 1
    operation = _read_operation(attributes, span.name)
    has_handled = operation == "process" and span.status.code != Status.STATUS_CODE_ERROR
    ended_us = span.end_time_unix_nano // 1_000
    return TakenMessages(
        contexts,
        unnamed,
        operation,
        span.start_time_unix_nano // 1_000,
        ended_us if has_handled else None,
        _read_labels(attributes),
    )


def _read_contexts(span: Span) -> tuple[bytes, ...]:
    """Return the creation contexts of the messages of a consumer span.

    Whether they are sampled is not asked: not every SDK says it in the flags of a link.
    """
    if span.links:
        found = [one.trace_id + one.span_id for one in span.links]
    elif span.parent_span_id and (span.flags & _IS_REMOTE or not span.flags & _KNOWS_REMOTE):
        found = [span.trace_id + span.parent_span_id]
    else:
        found = []
    return tuple(dict.fromkeys(one for one in found if len(one) == CONTEXT_BYTES))


def _read_operation(attributes: dict[str, Any], span_name: str) -> str:
    named = next((attributes[name] for name in _OPERATION if attributes.get(name)), None)
    # Before there were attributes, the name of a span told it.
    return str(named) if named is not None else span_name.rpartition(" ")[2]


def _read_name(attributes: dict[str, Any]) -> str | None:
    name = next((attributes[one] for one in DESTINATION_NAMES if attributes.get(one)), None)
    return name if isinstance(name, str) and NAME_PATTERN.fullmatch(name) else None


def _read_labels(attributes: dict[str, Any]) -> Labels:
    found: list[tuple[str, str]] = []
    for label, names in _LABELS.items():
        value = _first(attributes, names)
        if value is not None:
            found.append((label, str(value)[:MAX_LABEL_CHARS]))
    return tuple(found)


def _first(attributes: dict[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401 - the value of an attribute
    return next((attributes[name] for name in names if attributes.get(name) not in (None, "")), None)


def _read_attributes(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in attributes:
        kind = one.value.WhichOneof("value")
        if kind in ("string_value", "int_value", "bool_value"):
            found[one.key] = getattr(one.value, kind)
    return found
