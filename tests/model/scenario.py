"""Spool directories of small random pipelines in which anything may go wrong, made from the wire's page alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.model import transport
from tests.model.intake import PULSE, Stream
from tests.model.journey import Journey, Truth
from tests.model.pathway import Counting, parse
from tests.model.probe_instances import Life, Sent, Voice, lives
from tests.model.random_choices import MINUTE_US, SECOND_US, Dials, Dice, Fault
from tests.model.record import Body
from tests.model.shapes import config
from tests.model.transport import Segment
from tests.model.unreadable_records import folder_of

_AWKWARD = ("a b", "caf\u00e9", "%41", "x=1", "h#1", "[a]", "_under", "a.seg", "{b,c}", "q?", "s*")


@dataclass(slots=True)
class Scenario:
    """Scenario of which a directory was made."""

    dials: Dials
    streams: dict[str, dict[str, Any]]
    """The `[streams.X]` tables."""
    spool_dir: Path
    truth: dict[str, Truth] = field(default_factory=dict)
    """What really happened, by stream."""
    set_aside: int = 0
    """How many records must be set aside."""
    lives: list[Life] = field(default_factory=list)
    """The probe instances that stamped, those among them of which no batch came."""

    def count_lost(self, stream: str, start_us: int, node: str) -> int:
        """Count what was lost at a node with ids, or at one that only counts on the way to it: it is missing there."""
        counting = self._counting(stream)
        return self._count(stream, start_us, {node, *(one.name for one in counting if one.behind == node)})

    def count_lost_before(self, stream: str, start_us: int, node: str) -> int:
        """Count what was lost between the node with ids before one that only counts, and that."""
        counting = {one.name: one for one in self._counting(stream)}
        own = counting[node]
        between = [one.name for one in counting.values() if (one.before, one.behind) == (own.before, own.behind)]
        return self._count(stream, start_us, set(between[: between.index(node) + 1]))

    def _counting(self, stream: str) -> tuple[Counting, ...]:
        return Stream.of(self.streams[stream]).pathway.counting

    def _count(self, stream: str, start_us: int, nodes: set[str]) -> int:
        return sum(len(self.truth[stream].lost_at[start_us, node]) for node in nodes)


def generate(dials: Dials | int, spool_dir: Path) -> Scenario:
    """Write a spool directory; a number stands for the dials that it throws."""
    if isinstance(dials, int):
        dials = Dials.of_seed(dials)
    dice = Dice(dials)
    base_us = dice.rng.randint(1_580_000_000, 1_893_000_000) * SECOND_US // MINUTE_US * MINUTE_US
    names = dice.rng.sample(("orders", "payments.v2", "x"), dice.one((1, 1, 1, 2)))
    scenario = Scenario(dials, {name: config(dice) for name in names}, spool_dir)
    segments: list[Segment] = []
    for name in names:
        segments += _stream(dice, scenario, name, base_us)
    transport.copied(dice, segments)
    transport.poisoned(dice, segments)
    scenario.set_aside = sum(one.set_aside for one in segments)
    segments += _pulse(dice, base_us, len(segments))
    transport.write(dice, segments, spool_dir)
    return scenario


def _stream(dice: Dice, scenario: Scenario, name: str, base_us: int) -> list[Segment]:
    """Run one stream: its services, its messages, its probes, and the way of their batches."""
    stream = Stream.of(scenario.streams[name])
    stop_us = (
        base_us
        + dice.dials.windows * MINUTE_US
        + dice.moment(0.5 * stream.transit_us, 2 * stream.transit_us + 2 * MINUTE_US)
    )
    table = scenario.streams[name]
    counting = [one.name for one in stream.pathway.counting]
    # Messages go through the nodes that count as through all others.
    pathway = parse(table["path"], {node: side for node, side in table.get("stamps", {}).items() if side != "count"})
    alive = {node: lives(dice, name, node, base_us, stop_us) for node in pathway.nodes}
    for life in (life for node, replicas in alive.items() for life in replicas):
        life.crosses = dice.hit(Fault.CROSSED, 0.1)
        life.counts = (life.home in counting) is not life.crosses
    # At one node: where the replicas of two change their ids at once, and go on sharing messages, nobody can tell.
    for life in alive[dice.one(pathway.nodes)]:
        life.errs = Fault.RETYPED if dice.hit(Fault.RETYPED, 0.5) else life.errs
    journey = Journey(dice, pathway, alive, frozenset(counting))
    minutes = list(range(dice.dials.windows))
    busy = [minute for minute in minutes if not dice.hit(Fault.GAPS, 0.5)] or minutes[-1:]
    for _ in range(dice.dials.messages):
        journey.send(base_us, busy)
    scenario.truth[name] = journey.truth
    segments: list[Segment] = []
    instances = [life for replicas in alive.values() for life in replicas]
    scenario.lives += instances
    for number, life in enumerate(instances):
        sent, directory = Voice(dice, life).speak(), _directory(dice, life, number)
        hello = sent[: life.announces]
        kept = transport.with_holes(dice, sent[len(hello) :])
        transport.edged(dice, kept, stream, base_us + dice.one(minutes) * MINUTE_US)
        of_life = transport.announced(dice, hello, directory)
        of_life += transport.cut(dice, kept, directory, stream, len(of_life))
        transport.damaged(dice, of_life)
        segments += of_life
    return segments


def _directory(dice: Dice, life: Life, number: int) -> str:
    """Name an instance's directory: as probes do, or otherwise, which nothing but what cannot be read depends on."""
    if dice.hit(Fault.AWKWARD, 0.3):
        return f"{dice.one(_AWKWARD)}-{life.stream}-{number}"
    return folder_of(life.stream, life.node, life.probe, life.start_us + life.skew_us)


def _pulse(dice: Dice, base_us: int, number: int) -> list[Segment]:
    """Have the monitor's own heartbeats in the spool too, as a streaming run would have left them."""
    if dice.rng.random() < 0.6:
        return []
    every = Stream.of({"path": "monitor"})
    sent = [
        Sent(at_us, _heartbeat(at_us, seq))
        for seq, at_us in enumerate(range(base_us, base_us + MINUTE_US, 10 * SECOND_US))
    ]
    return transport.cut(dice, sent, f"pulse-{number}", every, 0)


def _heartbeat(at_us: int, seq: int) -> Body:
    packed = dict.fromkeys(("message_ids", "event_offset_us", "lag_in_us", "lag_out_us", "outcome", "reason"), b"")
    moments = {
        "window_start_ms": at_us // MINUTE_US * 60_000,
        "sent_at_us": at_us,
        "complete_through_us": at_us,
        "epoch_us": 0,
    }
    names = {"stream": PULSE, "node": "monitor", "probe": "pulse", "kind": "HEARTBEAT"}
    return {**packed, **moments, **names, "seq": seq, "count": 0, "reasons": [], "drops": [], "labels": {}}
