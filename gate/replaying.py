"""Rejected events, sent in again: judged as the gate judges, written, stamped, and marked as replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hopwatch.gate import ids
from hopwatch.gate.bodies import Sent
from hopwatch.gate.codecs import Codecs
from hopwatch.gate.gate import Gate
from hopwatch.gate.intake import Fate, Intake, Outcome
from hopwatch.gate.outlets import Leaving
from hopwatch.gate.records import Rejected, Replayed
from hopwatch.gate.registry.subjects import Registry
from hopwatch.probes.http.problems import Fault

AT_ONCE: Final = 500


def replay(
    gate: Gate, registry: Registry, stream: str, wanted: Sequence[Rejected], data: bytes | None = None
) -> list[Outcome]:
    """Send events in again, with ``data`` in place of their own if there is any, and return what became of each.

    One without an id or an event time of its own is not sent: it would enter as something that it is not. What may
    not enter still is neither stamped nor kept a second time.

    Raises:
        Problem: the subject has no schema, or the store is down.
    """
    return asyncio.run(_replay(gate, registry, stream, wanted, data))


async def _replay(
    gate: Gate, registry: Registry, stream: str, wanted: Sequence[Rejected], data: bytes | None
) -> list[Outcome]:
    intake = gate.intakes[stream]
    codecs = Codecs(registry, gate.clock)
    # Two of them may have one id, one of which owns it.
    outcomes = {at: _nameless(one) for at, one in enumerate(wanted) if not one.owns_id or one.event_us is None}
    able = [(at, one) for at, one in enumerate(wanted) if at not in outcomes]
    async with gate.running():
        for first in range(0, len(able), AT_ONCE):
            places, some = zip(*able[first : first + AT_ONCE], strict=True)
            codec = await codecs.of(intake.subject)
            sent = [Sent(ids.written(one.event_id), one.event_us, one.data if data is None else data) for one in some]
            found = await intake.take(sent, codec, producer="replay", each=True, keeps=False)
            outcomes |= dict(zip(places, found, strict=True))
            await _mark(intake, [one for one, of in zip(some, found, strict=True) if of.fate is Fate.ENTERED], gate)
    return [outcomes[at] for at in range(len(wanted))]


def _nameless(one: Rejected) -> Outcome:
    what = "event time of its own" if one.owns_id else "id of its own, or another event's"
    told = f"it has no {what}, and would be another: let its sender send it anew"
    return Outcome(ids.written(one.event_id), Fate.REJECTED, one.arrived_us, (Fault("", told),))


async def _mark(intake: Intake, entered: Sequence[Rejected], gate: Gate) -> None:
    """Note that these are in; if that cannot be written they are listed once more, and their ids tell them apart."""
    if not entered:
        return
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()
    now_us = gate.clock.wall_ns() // 1_000
    leaving = [
        Leaving(one.event_id, one.event_us or now_us, now_us, Replayed(one.event_id, now_us).record())
        for one in entered
    ]
    intake.rejected.write(leaving, lambda _: loop.call_soon_threadsafe(written.set_result, None))
    await written
