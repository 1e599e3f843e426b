"""Events in Avro: one in the envelope or in Confluent's framing, or many in an object container file.

Each is read by the schema that wrote it, as a value of the schema that the stream writes.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import orjson

from hopwatch.gate import request_bodies
from hopwatch.gate.avro_body import AvroInput, ResolutionError
from hopwatch.gate.codec import Codec, strip_logical_types
from hopwatch.gate.container_file import ContainerError, ContainerFile, TooLargeError
from hopwatch.gate.fields import MissingFieldError, RecordFields
from hopwatch.gate.framing import ValueFraming, parse_frame
from hopwatch.gate.ids import format_uuid
from hopwatch.gate.registry.avro_schema import Schema, SchemaError
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES, MAX_EVENTS, DecodedData, SentEvent
from hopwatch.gate.resolution import Resolution
from hopwatch.gate.rules import FieldPath
from hopwatch.gate.writer_schemas import StoredWriters
from hopwatch.probes.avro_reader import CONFLUENT, PREFIX_BYTES, SchemaRef
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.contract.limits import ID_BYTES
from hopwatch.probes.http.problems import Fault, HttpProblem

FIRST_BYTES: Final = frozenset({MARKER, CONFLUENT})
"""First bytes of framed Avro; no JSON begins with one of them."""
_MAX_KEPT: Final = 64
_MAX_DETAIL_CHARS: Final = 300

K = TypeVar("K")
V = TypeVar("V")


class EventPaths(NamedTuple):
    """Fields of the events of a file that have id and event time; without a time that of the id counts."""

    event_id: FieldPath
    time: FieldPath | None = None


class AvroEvents:
    """Reader of events in Avro, by the schemas of a registry; from any thread."""

    def __init__(self, registry: Registry) -> None:
        """Begin with no schema."""
        self._sources = StoredWriters(registry)
        self._writers: dict[SchemaRef, Schema] = {}
        self._files: dict[bytes, Schema] = {}
        """Schemas of files, by their text."""
        self._resolutions: dict[tuple[str, str], Resolution | ResolutionError] = {}

    def decode(self, data: bytes, codec: Codec) -> DecodedData:
        """Return the value of a framed event, or why it has none.

        Raises:
            SchemaStoreError: its schema is not cached, and the registry is down.
        """
        if len(data) > MAX_EVENT_BYTES:
            return _build_faulty(f"an event has at most {MAX_EVENT_BYTES:,} bytes, got {len(data):,}")
        try:
            frame = parse_frame(data, ValueFraming.AUTO)
            if frame is None:
                told = f"an event in Avro begins with {MARKER:02x} or {CONFLUENT:02x} and what names its schema"
                return _build_faulty(f"{told}, got {data[:5].hex() or 'nothing'}")
            writer = self._find_writer(frame.writer)
            return DecodedData(self._find_resolution(writer, codec.schema).read(data, frame.body_start))
        except UnknownError as error:
            return _build_faulty(f"unknown_schema: {error}: register the writer's schema")
        except ResolutionError as error:
            return _build_faulty(str(error), error.place)
        except ValueError as error:
            return _build_faulty(str(error))

    def parse_container(self, body: bytes, codec: Codec, paths: EventPaths, max_bytes: int) -> list[SentEvent]:
        """Return the events of a container file.

        Raises:
            HttpProblem: it is none, or has too many events or bytes.
        """
        try:
            file = ContainerFile(body)
            writer = self._parse_writer(file.schema)
            sent: list[SentEvent] = []
            # By the writer's own types, so that an event which the reader cannot represent has the others beside it.
            plain = Schema.parse(orjson.dumps(strip_logical_types(orjson.loads(writer.text))))
            splitter = self._find_resolution(plain, plain)
            for block in file.read_blocks(max_bytes):
                if len(sent) + block.values > MAX_EVENTS:
                    request_bodies.check_count(len(sent) + block.values)
                data = AvroInput(block.data, 0)
                for _ in range(block.values):
                    start = data.position
                    splitter.read_next(data)
                    framed = bytes([MARKER]) + writer.fingerprint + block.data[start : data.position]
                    sent.append(self._build_sent(framed, writer, codec, paths, f"/{len(sent)}"))
                if data.position != len(block.data):
                    left = len(block.data) - data.position
                    raise ContainerError(f"{left} bytes follow the values of a block")  # noqa: TRY301 - one of many
        except TooLargeError as error:
            raise HttpProblem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", str(error)) from None
        except (ContainerError, SchemaError, ResolutionError) as error:
            told = f"the body is no Avro object container file that can be read: {error!s:.300}"
            raise HttpProblem(HTTPStatus.BAD_REQUEST, "not-avro", told) from None
        request_bodies.check_count(len(sent))
        return sent

    def _build_sent(self, framed: bytes, writer: Schema, codec: Codec, paths: EventPaths, place: str) -> SentEvent:
        """Return an event of a file, with its id and time."""
        try:
            value = self._find_resolution(writer, codec.schema).read(framed, PREFIX_BYTES)
        except ResolutionError as error:
            fault = Fault(place + error.place, str(error)[:_MAX_DETAIL_CHARS])
            return SentEvent(None, None, framed, place, place, (fault,))
        event_id = paths.event_id.first_value(value)
        if isinstance(event_id, UUID):
            event_id = str(event_id)
        elif isinstance(event_id, bytes) and len(event_id) == ID_BYTES:
            event_id = format_uuid(event_id)
        decoded = DecodedData(value)
        if paths.time is None:
            return SentEvent(event_id, None, framed, place, place, decoded=decoded)
        try:
            time_us = RecordFields(time_path=paths.time).read_event_us(value, {}, None, codec.schema)
        except MissingFieldError as error:
            fault = Fault(place + error.place, str(error)[:_MAX_DETAIL_CHARS])
            return SentEvent(event_id, None, framed, place, place, (fault,), decoded)
        return SentEvent(event_id, time_us, framed, place, place, decoded=decoded)

    def _find_writer(self, ref: SchemaRef) -> Schema:
        schema = self._writers.get(ref)
        if schema is None:
            schema = _make_room(self._writers)[ref] = Schema.parse(self._sources.find_text(ref))
        return schema

    def _parse_writer(self, text: bytes) -> Schema:
        schema = self._files.get(text)
        if schema is None:
            schema = _make_room(self._files)[text] = Schema.parse(text)
        return schema

    def _find_resolution(self, writer: Schema, reader: Schema) -> Resolution:
        """Return the resolution of two schemas.

        Raises:
            ResolutionError: no value of the writer can be read by the reader.
        """
        key = writer.text, reader.text
        found = self._resolutions.get(key)
        if found is None:
            try:
                found = Resolution(writer, reader)
            except ResolutionError as error:
                found = error
            _make_room(self._resolutions)[key] = found
        if isinstance(found, ResolutionError):
            raise ResolutionError(str(found), *found.path)
        return found


def _build_faulty(told: str, place: str = "") -> DecodedData:
    return DecodedData(None, (Fault(place, told[:_MAX_DETAIL_CHARS]),))


def _make_room(kept: dict[K, V]) -> dict[K, V]:
    """Return the map with room for one more; a full one is cleared, and its values are built again on demand."""
    if len(kept) >= _MAX_KEPT:
        kept.clear()
    return kept
