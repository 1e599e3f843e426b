"""Schemas of writers from a registry: each is asked for once, and a message waits while nobody knows what wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from hopwatch.probes.avro_reader import (
    CONFLUENT,
    FramedValue,
    SchemaRef,
    parse_confluent_frame,
    parse_fingerprint_frame,
)
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.schema_registry import ForeignSchemaError, RegistryDownError, UnknownSchemaError, describe_ref
from hopwatch.probes.taps.avro import AvroFraming, FramedBody, SchemaWaitError, WriterSchema
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.unknown_schemas import MAX_HOLD_S, UnknownSchema

MAX_SCHEMAS: Final = 1_024
"""Schemas that are kept, and unknown ones that are remembered."""
ASK_AGAIN_S: Final = 5.0
"""Time for which an unknown schema is not asked for again."""
MAX_PAUSE_S: Final = 30.0
"""Maximum pause between two requests to a registry that gives no answer; the first is a second."""
_MAX_REPORTED: Final = 100


class SchemaSource(Protocol):
    """Source of schemas, such as :class:`hopwatch.probes.schema_registry.SchemaRegistry`."""

    def find_schema(self, writer: SchemaRef) -> Any:  # noqa: ANN401 - JSON
        """Return a schema as JSON; see :meth:`hopwatch.probes.schema_registry.SchemaRegistry.find_schema`."""

    def find_name(self, writer: SchemaRef) -> str:
        """Return its name; see :meth:`hopwatch.probes.schema_registry.SchemaRegistry.find_name`."""


@dataclass(slots=True)
class _Unknown:
    """Times at which an unknown schema was first asked for, and last."""

    since_s: float
    asked_s: float


class RegistrySchemas:
    """Schemas of a registry, by the reference at the beginning of each value."""

    def __init__(
        self,
        registry: SchemaSource,
        around: RunContext,
        *,
        framing: AvroFraming | None = None,
        unknown: UnknownSchema = UnknownSchema.REJECT,
        hold_s: float = MAX_HOLD_S,
    ) -> None:
        """Begin with none; without a framing the first byte of each value tells it."""
        self._registry, self._context, self._framing = registry, around, framing
        self._hold_s = hold_s if unknown is UnknownSchema.HOLD else 0.0
        self._writers: dict[SchemaRef, WriterSchema | str] = {}
        """Schemas by their references; of one that cannot be used the reason."""
        self._unknown: dict[SchemaRef, _Unknown] = {}
        self._reported, self._down = OncePerCause(_MAX_REPORTED), OncePerCause()
        self._next_ask_s, self._pause_s = float("-inf"), 0.0

    def find_body(self, value: bytes) -> FramedBody:
        """Return the schema of a value, and where its body begins.

        Raises:
            ValueError: the value is framed otherwise, or its schema cannot be used.
            UnknownSchemaError: the registry does not know its schema, and it does not wait, or not any more.
            SchemaWaitError: it waits for the registry, or for its schema to be registered.
        """
        writer, start = self._parse_frame(value)
        found = self._writers.get(writer)
        if found is None:
            found = self._load(writer)
        if isinstance(found, str):
            raise ValueError(found)  # noqa: TRY004 - what came is wrong, not how it was called
        return FramedBody(found, start)

    def strip_framing(self, data: bytes) -> bytes | None:
        """Return the body of bytes that are framed as values are, such as a key of another schema; else None."""
        try:
            _, start = self._parse_frame(data)
        except ValueError:
            return None
        return data[start:]

    def _parse_frame(self, value: bytes) -> FramedValue:
        framing = self._framing
        if framing is None:
            framing = _FRAMINGS.get(value[0] if value else -1)
            if framing is None:
                told = f"a value begins with {MARKER:02x} or {CONFLUENT:02x}, and what names its schema"
                raise ValueError(f"{told}; got {value[:5].hex()}")
        return parse_fingerprint_frame(value) if framing is AvroFraming.FINGERPRINT else parse_confluent_frame(value)

    def _load(self, writer: SchemaRef) -> WriterSchema | str:
        now_s = self._context.monotonic_s()
        unknown = self._unknown.get(writer)
        if unknown is not None and now_s - unknown.asked_s < ASK_AGAIN_S:
            raise self._build_unknown_error(writer, unknown, now_s)
        if now_s < self._next_ask_s:
            raise SchemaWaitError(describe_ref(writer))
        made: WriterSchema | str
        try:
            made = WriterSchema(self._registry.find_schema(writer), self._registry.find_name(writer))
        except RegistryDownError as error:
            self._on_down(error)
            raise SchemaWaitError(describe_ref(writer)) from None
        except UnknownSchemaError:
            self._on_answer()
            unknown = unknown or _Unknown(now_s, now_s)
            unknown.asked_s = now_s
            _make_room(self._unknown)[writer] = unknown
            raise self._build_unknown_error(writer, unknown, now_s) from None
        except (ForeignSchemaError, ValueError) as error:
            made = f"the schema {describe_ref(writer)} cannot be used: {error}"
            self._report_once(f"{made}: what it wrote cannot be read")
        self._on_answer()
        if self._unknown.pop(writer, None) is not None:
            self._context.report(f"the schema {describe_ref(writer)} is registered now")
        _make_room(self._writers)[writer] = made
        return made

    def _build_unknown_error(
        self, writer: SchemaRef, unknown: _Unknown, now_s: float
    ) -> SchemaWaitError | UnknownSchemaError:
        name = describe_ref(writer)
        if now_s - unknown.since_s < self._hold_s:
            told = f"the schema {name} is not registered: its messages wait until it is, {self._hold_s:g} s at most"
            self._report_once(told)
            return SchemaWaitError(name)
        self._report_once(f"the schema {name} is not registered: its messages count as unknown_schema until it is")
        return UnknownSchemaError(name)

    def _report_once(self, told: str) -> None:
        if self._reported.is_new(told):
            self._context.report(told)

    def _on_down(self, error: RegistryDownError) -> None:
        self._pause_s = min(MAX_PAUSE_S, 2 * self._pause_s or 1.0)
        self._next_ask_s = self._context.monotonic_s() + self._pause_s
        if self._down.is_new():
            self._context.report(f"{error}: what needs a schema of it waits, nothing is lost")

    def _on_answer(self) -> None:
        self._pause_s, self._next_ask_s = 0.0, float("-inf")
        if self._down.rearm():
            self._context.report("the registry answers again")


_FRAMINGS: Final = {MARKER: AvroFraming.FINGERPRINT, CONFLUENT: AvroFraming.CONFLUENT}


def _make_room(kept: dict[SchemaRef, Any]) -> dict[SchemaRef, Any]:
    """Return the map with room for one more; the oldest one makes it."""
    if len(kept) >= MAX_SCHEMAS:
        del kept[next(iter(kept))]
    return kept
