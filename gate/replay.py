"""Replay of rejected events: validate them as the gate does, write, stamp, and mark them as replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hopwatch.gate import ids
from hopwatch.gate.avro_events import FIRST_BYTES
from hopwatch.gate.codec import Codec
from hopwatch.gate.codec_cache import CodecCache
from hopwatch.gate.gate import Gate
from hopwatch.gate.intake import EventIntake, EventResult, EventStatus
from hopwatch.gate.outlets import OutgoingRecord
from hopwatch.gate.records import RejectedRecord, ReplayedRecord
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.probes.http.problems import Fault

BATCH_EVENTS: Final = 500


def replay_events(
    gate: Gate, registry: Registry, stream: str, wanted: Sequence[RejectedRecord], data: bytes | None = None
) -> list[EventResult]:
    """Replay rejected events, with ``data`` in place of their own data if given, and return the result of each.

    An event without an id or an event time of its own is not sent: it would enter as another event. An event that is
    refused again is neither stamped nor written to quarantine a second time.

    Raises:
        HttpProblem: the subject has no schema, or the store is down.
    """
    return asyncio.run(_replay(gate, registry, stream, wanted, data))


async def _replay(
    gate: Gate, registry: Registry, stream: str, wanted: Sequence[RejectedRecord], data: bytes | None
) -> list[EventResult]:
    intake = gate.intakes[stream]
    codecs = CodecCache(registry, gate.clock)
    # Keyed by position: two of them may have the same id, which only one of them owns.
    outcomes = {
        at: _reject_unidentified(one) for at, one in enumerate(wanted) if not one.owns_id or one.event_us is None
    }
    able = [(at, one) for at, one in enumerate(wanted) if at not in outcomes]
    async with gate.lifespan():
        for first in range(0, len(able), BATCH_EVENTS):
            places, some = zip(*able[first : first + BATCH_EVENTS], strict=True)
            codec = await codecs.get_codec(intake.subject)
            sent = [await _build_sent(one, one.data if data is None else data, codec, codecs) for one in some]
            found = await intake.accept(sent, codec, producer="replay", each=True, keeps=False)
            outcomes |= dict(zip(places, found, strict=True))
            await _mark_replayed(
                intake, [one for one, of in zip(some, found, strict=True) if of.status is EventStatus.ENTERED], gate
            )
    return [outcomes[at] for at in range(len(wanted))]


async def _build_sent(one: RejectedRecord, data: bytes, codec: Codec, codecs: CodecCache) -> SentEvent:
    """Return a rejected event as it was sent: in JSON, or in framed Avro."""
    decoded = await codecs.decode_event(data, codec) if data[:1] and data[0] in FIRST_BYTES else None
    return SentEvent(ids.format_uuid(one.event_id), one.event_us, data, decoded=decoded)


def _reject_unidentified(one: RejectedRecord) -> EventResult:
    what = "event time of its own" if one.owns_id else "id of its own, or another event's"
    told = f"it has no {what}, and would be another event: let its sender send it again"
    return EventResult(ids.format_uuid(one.event_id), EventStatus.REJECTED, one.arrived_us, (Fault("", told),))


async def _mark_replayed(intake: EventIntake, entered: Sequence[RejectedRecord], gate: Gate) -> None:
    """Write the markers of replayed events; without them these are listed again, and their ids reveal a repeat."""
    if not entered:
        return
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()
    now_us = gate.clock.wall_ns() // 1_000
    leaving = [
        OutgoingRecord(one.event_id, one.event_us or now_us, now_us, ReplayedRecord(one.event_id, now_us).encode())
        for one in entered
    ]
    intake.rejected.write(leaving, lambda _: loop.call_soon_threadsafe(written.set_result, None))
    await written
