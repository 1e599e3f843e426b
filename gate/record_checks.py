"""Validation of records that are already in a topic: decode by the writer's schema, then apply the gate's checks.

Nothing here depends on Kafka: the result depends only on the record and on the time at which its topic took it, so that
a second validation after a crash has the same result.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from hopwatch.gate import request_bodies
from hopwatch.gate.avro_body import ResolutionError
from hopwatch.gate.codec import Codec, SchemaMismatchError
from hopwatch.gate.event_checks import CheckedEvent, EventPolicy, ParsedEvent, apply_rules, check_event_time, check_size
from hopwatch.gate.fields import MissingFieldError, RecordFields
from hopwatch.gate.framing import ValueFraming, parse_frame
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.registry.subjects import UnknownError
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES, SentEvent
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.gate.rules import Action
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.contract.ids import TextId
from hopwatch.probes.http.problems import Fault
from hopwatch.probes.schema_registry import describe_ref

MAX_METADATA_BYTES: Final = 64 * 1024
"""Maximum size of the key and the headers of a record, so that the output record fits into a topic."""
_MAX_DETAIL_CHARS: Final = 300


HEADER_FIELDS: Final = RecordFields()


class UnknownSchemaPolicy(StrEnum):
    """Choice for a record whose schema is not registered: it is rejected, goes on as it came, unchecked, or waits."""

    REJECT = "reject"
    STAMP = "stamp"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """Record of a topic.

    ``location`` is ``TOPIC/PARTITION/OFFSET``; ``recorded_us`` the record's timestamp, µs since 1970, None without one;
    ``metadata_bytes`` the size of key and headers; ``header_fault`` says why the headers cannot be read, and there are
    none then.
    """

    location: str
    value: bytes | None
    headers: Mapping[str, object]
    recorded_us: int | None
    metadata_bytes: int = 0
    header_fault: str = ""


@dataclass(frozen=True, slots=True)
class RecordChecker:
    """Validate the records of a topic against its schema, its limits and its rules."""

    stream: str
    resolutions: ResolutionCache
    policy: EventPolicy
    fields: RecordFields = HEADER_FIELDS
    framing: ValueFraming = ValueFraming.AUTO
    unknown: UnknownSchemaPolicy = UnknownSchemaPolicy.REJECT
    """With ``stamp`` and ``hold`` neither id nor event time stand in the value, as it cannot be read."""

    def check(self, record: TopicRecord, now_us: int, absent: Container[SchemaRef] = ()) -> CheckedEvent:
        """Check a record that is read now; the schemas in ``absent`` are known to be unknown, and not asked for.

        With ``hold`` a record that may enter but for its unknown schema waits for it: see ``CheckedEvent.awaited``.

        Its arrival is the time at which its topic took it, so that the lag of a validator does not make it too old. A
        time before 1970 or ahead of now is none.

        Raises:
            SchemaStoreError: its schema is not cached, and the registry is down.
        """
        recorded_us = record.recorded_us
        arrived_us = now_us if recorded_us is None or recorded_us < 0 else min(recorded_us, now_us)
        codec = self.resolutions.get_codec()
        faults: list[Fault] = []
        value, written, policy, awaited = None, b"", self.policy, None
        try:
            value, codec = self._decode_value(record, absent)
            written = check_size(codec.encode_value(value))
        except SchemaMismatchError as error:
            faults += error.faults
        except UnknownError as error:
            if self.unknown is UnknownSchemaPolicy.REJECT:
                faults.append(_build_fault(f"unknown_schema: {error}: register the writer's schema"))
            else:
                # No rule can look into it.
                written, policy = record.value or b"", replace(self.policy, rules=())
                awaited = self.find_writer(record.value) if self.unknown is UnknownSchemaPolicy.HOLD else None
        event_id = self._read_id(record, value, faults)
        said_us = self._read_event_time(record, value, codec, faults)
        event_us = None
        if said_us is not None:
            try:
                event_us = check_event_time(said_us, self.policy, arrived_us)
            except ValueError as error:
                faults.append(Fault("", str(error)))
        sent = SentEvent(None, None, (record.value or b"")[:MAX_EVENT_BYTES])
        found = apply_rules(ParsedEvent(sent, event_id, event_us, value, written, faults, said_us), policy, arrived_us)
        writer = self.find_writer(record.value)
        schema = "" if writer is None else self.resolutions.get_name(writer)
        return found._replace(schema=schema, awaited=None if found.faults else awaited)

    def find_writer(self, value: bytes | None) -> SchemaRef | None:
        """Return the reference of the schema that a value names; None if it names none, as JSON does."""
        try:
            found = parse_frame(value or b"", self.framing)
        except ValueError:
            return None
        return None if found is None else found.writer

    def is_registered(self, writer: SchemaRef) -> bool:
        """Return whether a schema is registered, even if it cannot be used.

        Raises:
            SchemaStoreError: the registry is down.
        """
        try:
            self.resolutions.get_resolution(writer)
        except UnknownError:
            return False
        except ValueError:
            pass
        return True

    def build_rejected(self, judged: CheckedEvent, record: TopicRecord, now_us: int) -> RejectedRecord:
        """Return the rejected record to write to quarantine; its location stands for its producer."""
        is_held = judged.action is Action.QUARANTINE
        return judged.build_rejected(self.stream, record.location, now_us, is_held=is_held)

    def _decode_value(self, record: TopicRecord, absent: Container[SchemaRef]) -> tuple[Any, Codec]:
        """Return the value of a record, and the codec that writes it.

        Raises:
            SchemaMismatchError: it has no valid value.
            UnknownError: its schema is not registered.
        """
        if record.metadata_bytes > MAX_METADATA_BYTES:
            told = f"key and headers have at most {MAX_METADATA_BYTES:,} bytes, got {record.metadata_bytes:,}"
            raise _mismatch(f"{told}: they are left out")
        if record.header_fault:
            raise _mismatch(f"{record.header_fault}: the headers are left out")
        if record.value is None:
            raise _mismatch("the record has no value")
        data = check_size(record.value)
        try:
            found = parse_frame(data, self.framing)
            if found is None:
                if faults := request_bodies.find_repeats(data):
                    raise SchemaMismatchError(faults)  # noqa: TRY301 - one sentence of many
                codec = self.resolutions.get_codec()
                return codec.parse_json(data), codec
            if found.writer in absent:
                raise UnknownError("schema", describe_ref(found.writer))  # noqa: TRY301 - as the registry would
            resolution, codec = self.resolutions.get_resolution(found.writer)
            return resolution.read(data, found.body_start), codec
        except ResolutionError as error:
            raise _mismatch(str(error), error.place) from None
        except (SchemaMismatchError, UnknownError):
            raise
        except ValueError as error:
            raise _mismatch(str(error)) from None

    def _read_id(self, record: TopicRecord, value: object, faults: list[Fault]) -> bytes:
        if value is None and self.fields.id_path is not None:
            return TextId.from_text(record.location)
        try:
            return self.fields.read_event_id(value, record.headers, record.location)
        except MissingFieldError as error:
            faults.append(Fault(error.place, str(error)))
            return TextId.from_text(record.location)

    def _read_event_time(self, record: TopicRecord, value: object, codec: Codec, faults: list[Fault]) -> int | None:
        """Return the stated event time; None without a valid one."""
        # A value or headers that cannot be read have their own fault.
        is_unread = record.header_fault and not self.fields.is_record_time
        if is_unread or (value is None and self.fields.time_path is not None):
            return None
        try:
            return self.fields.read_event_us(value, record.headers, record.recorded_us, codec.schema)
        except MissingFieldError as error:
            faults.append(Fault(error.place, str(error)))
        except ValueError as error:
            faults.append(Fault("", str(error)))
        return None


def _mismatch(told: str, place: str = "") -> SchemaMismatchError:
    return SchemaMismatchError((_build_fault(told, place),))


def _build_fault(told: str, place: str = "") -> Fault:
    return Fault(place, told[:_MAX_DETAIL_CHARS])
