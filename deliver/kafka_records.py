"""Records of Kafka as messages to deliver, and settled messages as records: rejected, or waiting for a retry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.retry_topics import DeliveryTopics, build_retry_headers
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.gate.quarantine import DELIVERY_HEADER
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.retry_headers import RETRY_HEADERS, RetryState, parse_retry_headers
from hopwatch.gate.transactions import KafkaHeaders, OutputRecord
from hopwatch.probes.contract.ids import TextId
from hopwatch.probes.http.problems import Fault
from hopwatch.probes.kafka.consumer import read_headers, read_recorded_us
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER, read_id
from hopwatch.probes.taps.documents import find_value, parse_path
from hopwatch.probes.values import IdFormat, TimeUnit, build_id_reader, build_time_reader, check_event_us

if TYPE_CHECKING:
    from confluent_kafka import Message

MAX_REJECTED_BYTES: Final = 768 * 1024
"""Bytes of a rejected message that are kept: with its reasons the record fits into a topic with default settings."""
CUT_BYTES: Final = 16 * 1024
"""Bytes that are kept of a message whose record the topic does not take, with its key and headers."""
_CUT: Final = re.compile(r"of [0-9,]+ bytes the first [0-9,]+ are kept")
MAX_BODY_CHARS: Final = 500
"""Characters of the receiver's answer that are kept as a reason."""
MAX_DETAIL_CHARS: Final = 300
_NO_STATE: Final = RetryState()
_read_json_id: Final = build_id_reader(IdFormat.AUTO)
_read_header_time: Final = build_time_reader(TimeUnit.US)


class PoisonError(ValueError):
    """Record that cannot be delivered: it has no value, or an id or event time that cannot be read."""


class HeldRecord(NamedTuple):
    """Record in hand: its message, its id as it is stamped, and its headers as they came."""

    message: DeliveryMessage
    stamp_id: bytes
    headers: KafkaHeaders
    until_us: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class RecordParser:
    """Parser of records: ids and event times are in headers, or in JSON values at these paths.

    Raises:
        TapUsageError: a path is invalid.
    """

    topics: DeliveryTopics
    id_path: str = ""
    time_path: str = ""
    unit: TimeUnit = TimeUnit.US

    def __post_init__(self) -> None:
        """Check the paths."""
        for path in filter(None, (self.id_path, self.time_path)):
            parse_path(path)

    def parse(self, message: Message, now_us: int) -> HeldRecord:
        """Return the record of a message; one that cannot be delivered has a fault, an id and a time all the same."""
        position = _read_position(message)
        headers: KafkaHeaders = []
        event_us, value, fault = now_us, message.value(), ""
        try:
            headers = _read_headers(message)
            if value is None:
                raise PoisonError("the record has no value, and there is nothing to send")  # noqa: TRY301 - one of three
            found_id, event_us = self._read_identity(message, dict(headers), value, now_us)
        except PoisonError as error:
            found_id, fault = _build_place_id(position), str(error)
        is_retry = self.topics.is_retry(position.topic)
        state = self.topics.bound_state(parse_retry_headers(headers), position.topic, now_us) if is_retry else _NO_STATE
        own = [one for one in headers if one[0] not in RETRY_HEADERS] if is_retry else headers
        delivered = DeliveryMessage(
            position,
            found_id[0],
            event_us,
            message.key(),
            value or b"",
            tuple([(name, said if type(said) is bytes else _to_bytes(said)) for name, said in own]),
            state.tries,
            state.first_sent_us,
        )
        return HeldRecord(delivered, found_id[1], headers, state.until_us, fault)

    def _read_identity(
        self, message: Message, headers: dict[str, str | bytes], value: bytes, now_us: int
    ) -> tuple[tuple[str, bytes], int]:
        """Return id and event time of a record; without headers its place and its own time stand for them.

        Raises:
            PoisonError: one of them is there, or should be, and cannot be read.
        """
        document = _parse_json(value) if self.id_path or self.time_path else None
        found_id: object = headers.get(ID_HEADER)
        found_time: object = headers.get(TIME_HEADER)
        read_time = _read_header_time
        if self.id_path:
            found_id = find_value(document, parse_path(self.id_path))
        if self.time_path:
            found_time, read_time = find_value(document, parse_path(self.time_path)), build_time_reader(self.unit)
        is_named = found_id is not None or bool(self.id_path)
        identity = _read_id(found_id, self.id_path) if is_named else _build_place_id(_read_position(message))
        is_recorded = found_time is None and not self.time_path
        try:
            if is_recorded:
                return identity, check_event_us(read_recorded_us(message) or now_us)
            return identity, read_time(found_time)
        except ValueError as error:
            where = f"the value at {self.time_path}" if self.time_path else f"the header {TIME_HEADER}"
            where = "the record's own time" if is_recorded else where
            raise PoisonError(f"{where}: {error!s:.{MAX_DETAIL_CHARS}}") from None


def _read_position(message: Message) -> SourcePosition:
    return SourcePosition(message.topic() or "", message.partition() or 0, message.offset() or 0)


def _read_headers(message: Message) -> KafkaHeaders:
    try:
        return read_headers(message)
    except ValueError as error:
        raise PoisonError(str(error)) from None


def _build_place_id(position: SourcePosition) -> tuple[str, bytes]:
    """Return the id of a message without one, which is its place, as text and as it is stamped."""
    text = "/".join(map(str, position))
    return text, TextId.from_text(text)


def _read_id(found: object, path: str) -> tuple[str, bytes]:
    where = f"the value at {path}" if path else f"the header {ID_HEADER}"
    try:
        wire = _read_json_id(found) if path else read_id(found)
    except ValueError as error:
        raise PoisonError(f"{where}: {error!s:.{MAX_DETAIL_CHARS}}") from None
    return _to_bytes(found).decode("utf-8") if isinstance(found, bytes | str) else str(found), wire


def _parse_json(value: bytes) -> object:
    try:
        return orjson.loads(value)
    except ValueError:
        raise PoisonError("the value is not JSON, where id or event time are to be") from None


def _to_bytes(value: bytes | str | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def build_retry_record(settlement: Settlement, held: HeldRecord, topics: DeliveryTopics) -> OutputRecord:
    """Return the record of a deferred message, for the retry topic of its tier."""
    message = settlement.message
    tier = topics.tiers[settlement.tier]
    state = RetryState(message.tries, message.first_sent_us, settlement.until_us)
    headers = build_retry_headers(held.headers, state, held.message.message_id, held.message.event_us)
    return OutputRecord(tier.topic, held.message.value, held.message.key, headers)


def build_rejected_record(  # noqa: PLR0913 - what a record is made of
    settlement: Settlement, held: HeldRecord, topics: DeliveryTopics, *, stream: str, name: str, is_cut: bool = False
) -> OutputRecord:
    """Return the record of a rejected message, in the format of the gate's quarantine.

    Its place in the topic stands for its producer. Key and headers go along, with the name of the delivery. With
    ``is_cut`` they do not, but for id and event time, and little of the value: a record that every topic takes.
    """
    message = held.message
    reasons = [Fault("", settlement.reason[:MAX_DETAIL_CHARS])]
    body = settlement.body.decode("utf-8", "replace").strip()
    if body:
        reasons.append(Fault("", f"the receiver's answer: {body[:MAX_BODY_CHARS]}"))
    most_bytes = CUT_BYTES if is_cut else MAX_REJECTED_BYTES
    if is_cut or len(message.value) > most_bytes:
        reasons.append(Fault("", f"of {len(message.value):,} bytes the first {most_bytes:,} are kept"))
    rejected = RejectedRecord(
        stream=stream,
        event_id=bytes(held.stamp_id),
        event_us=message.event_us,
        arrived_us=settlement.finished_us,
        producer="/".join(map(str, message.position)),
        data=message.value[:most_bytes],
        reasons=tuple(reasons),
        owns_id=not held.fault,
    )
    own = [] if is_cut else held.headers
    headers = build_retry_headers(own, RetryState(), message.message_id, message.event_us)
    kept = [one for one in headers if one[0] not in RETRY_HEADERS and one[0] != DELIVERY_HEADER]
    key = None if is_cut else message.key
    return OutputRecord(topics.rejected, rejected.encode(), key, [*kept, (DELIVERY_HEADER, name)])


def is_whole(rejected: RejectedRecord) -> bool:
    """Return whether all of a rejected message's value was kept."""
    return not any(_CUT.fullmatch(one.detail) for one in rejected.reasons)


def reject_poison(held: HeldRecord, now_us: int) -> Settlement:
    """Return the settlement of a record that cannot be delivered."""
    return Settlement(held.message, Ending.REJECTED, now_us, reason=held.fault)
