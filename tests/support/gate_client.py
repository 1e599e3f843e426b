"""Client of the gate for tests: an outlet in memory, a manual clock, and the app over them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import httpx
import orjson

from hopwatch.gate import ids, records
from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import EventPolicy
from hopwatch.gate.gate import Gate
from hopwatch.gate.intake import EventIntake, GateStream
from hopwatch.gate.outlets import OutgoingRecord, OutletError, WriteCallback
from hopwatch.gate.producers import Producer, Producers
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.rules import Action, Enumeration, EventRule, FieldPath, NumberRange
from hopwatch.gate.stamper import GateStamper
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.message_headers import generate_id
from hopwatch.testing import ManualClock, MemorySink, Observation, observations
from tests.gate.app_client import Asked
from tests.support.schemas import record

HOUR_US: Final = 3_600_000_000
ORDER: Final = record({"name": "price", "type": "double"}, {"name": "item", "type": "string"})
GOOD: Final = {"price": 1.5, "item": "x"}
EVENTS: Final = "/streams/orders/events"
CHEAP: Final = EventRule("cheap", NumberRange(FieldPath.parse("price"), None, 10), Action.QUARANTINE)
KNOWN: Final = EventRule("known", Enumeration(FieldPath.parse("item"), ("x", "y")), Action.NOTE)
POSITIVE: Final = EventRule("positive", NumberRange(FieldPath.parse("price"), 0, None), Action.REJECT)


def configured(to: str, more: str = "") -> str:
    """Return a configuration with one entrance; ``more`` are lines of its table."""
    return f"""
[transport]
url = "spool:./spool"
[store]
url = "sqlite:///./hopwatch.db"
[streams.orders]
path = "gate -> sink"
[gate.streams.orders]
to = "{to}"
{more}
"""


CONFIG: Final = configured("spool:./events/orders")


class MemoryOutlet:
    """Outlet in memory; ``fails`` are ids that it does not write, ``is_full`` makes it refuse all records."""

    def __init__(self) -> None:
        """Begin empty."""
        self.left: list[OutgoingRecord] = []
        self.fails: set[bytes] = set()
        self.is_full = False
        self.down = ""
        self.is_closed = False
        self.waiting: list[WriteCallback] | None = None
        self.is_asked = asyncio.Event()

    def write(self, leaving: Sequence[OutgoingRecord], done: WriteCallback) -> None:
        """Keep records, and say so; or later, where ``waiting`` is a list."""
        if self.is_full:
            raise OutletError("full")
        self.left += [one for one in leaving if one.event_id not in self.fails]
        failed = frozenset(one.event_id for one in leaving if one.event_id in self.fails)
        if self.waiting is None:
            done(failed)
        else:
            self.waiting.append(lambda _: done(failed))
            self.is_asked.set()

    def check(self) -> None:
        """Be well, unless it is down."""
        if self.down:
            raise OutletError(self.down)

    def close(self) -> None:
        """Be closed."""
        self.is_closed = True


class AtEntrance(Asked):
    """The app with one stream, ``orders``, whose subject has a schema."""

    def __init__(
        self,
        *rules: EventRule,
        producers: Sequence[Producer] = (),
        limits: Limits | None = None,
        schema: Any = ORDER,  # noqa: ANN401 - JSON
    ) -> None:
        """Make it."""
        self.clock = ManualClock()
        self.outlet, self.rejected, self.sink = MemoryOutlet(), MemoryOutlet(), MemorySink()
        self.stamping = GateStamper("orders", "gate", self.sink, self.clock)
        self.intake = EventIntake(
            GateStream("orders", "orders", EventPolicy(24 * HOUR_US, rules)),
            self.outlet,
            self.rejected,
            stamping=self.stamping,
            clock=self.clock,
        )
        self.gate = Gate({"orders": self.intake}, self.clock, Producers(producers))
        super().__init__(self.gate, limits)
        if schema is not None:
            self.register(schema)

    def register(self, schema: Any) -> None:  # noqa: ANN401 - JSON
        """Make a schema the latest of the subject; the gate looks for it anew."""
        answer = self.ask("PUT", "/subjects/orders/schemas", schema)
        assert answer.status_code in {200, 201, 401}, answer.text
        self.clock.advance(2)

    def new_id(self) -> str:
        """Return an id that is made now."""
        return ids.format_uuid(generate_id(self.clock.us))

    def event(self, data: Any = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return an event of a batch, one in order by default."""
        return {"id": self.new_id(), "data": GOOD if data is None else data, **more}

    def stamped(self) -> list[Observation]:
        """Return what was stamped so far."""
        self.stamping.sender.flush()
        found = observations(self.sink)
        self.sink.records.clear()
        return found

    def refused(self) -> list[RejectedRecord]:
        """Return what went to the rejected."""
        found = [records.decode_rejected(one.record) for one in self.rejected.left]
        return [one for one in found if isinstance(one, RejectedRecord)]

    def values(self, said: Any = ORDER) -> list[Any]:  # noqa: ANN401 - JSON
        """Return the values of the events that left, which were written with a schema."""
        codec = Codec(Schema.parse(orjson.dumps(said)))
        return [codec.decode(one.record) for one in self.outlet.left]


def put(gate: AtEntrance, event_id: str, data: Any = GOOD, **headers: str) -> httpx.Response:  # noqa: ANN401 - JSON
    """Send one event."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return gate.ask("PUT", f"{EVENTS}/{event_id}", data, headers=named)


def post(gate: AtEntrance, events: list[Any], **query: str) -> httpx.Response:
    """Send a batch."""
    return gate.ask("POST", EVENTS, events, params=query)
