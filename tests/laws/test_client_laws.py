"""Laws of the sender to the gate, over any answers, kills and bounds, on virtual time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.client.errors import QueueFullError
from hopwatch.client.event_records import EventRecord, build_record
from hopwatch.client.outcomes import OutcomeResult, SendOutcome
from hopwatch.client.policy import MAX_BATCH_BYTES, ClientPolicy
from hopwatch.client.queues import EventQueue, MemoryQueue
from hopwatch.client.spool import SpoolQueue
from tests.support.simulated_gate import ClientDriver, Reaction, SimulatedGate

RETRY_AFTER_MAX_S = 20.0
STATUSES = (200, 201, 204, 207, 207, 207, 301, 400, 401, 404, 408, 413, 415, 425, 429, 500, 503)
reactions = st.builds(
    Reaction,
    status=st.sampled_from(STATUSES) | st.just(0),
    statuses=st.lists(st.sampled_from((201, 201, 202, 409, 422, 429, 503)), min_size=1, max_size=4).map(tuple),
    retry_after=st.sampled_from(("", "0", "3", "400", "soon")),
    is_taken=st.booleans(),
    delay_s=st.sampled_from((0.001, 0.05, 9.0)),
)
sizes = st.sampled_from((1, 30, 2_000))


@dataclass(frozen=True)
class Case:
    """Case of a law: what happens in each life of the client, which a kill ends but for the last one."""

    policy: ClientPolicy
    max_waiting_bytes: int
    script: list[Reaction]
    lives: list[list[int]]
    """Per life the sizes of the events that are sent; after each of them the client goes on for some steps."""
    steps: list[int]
    torn_bytes: int
    is_finished: bool
    """Whether a kill leaves no report without its deletion from the spool."""
    seed: int


@st.composite
def cases(draw: st.DrawFn, max_lives: int = 4) -> Case:
    """Draw a case."""
    policy = ClientPolicy(
        batch_max_events=draw(st.integers(1, 12)),
        batch_max_bytes=draw(st.sampled_from((1, 3_000, MAX_BATCH_BYTES))),
        linger_s=draw(st.sampled_from((0.0, 0.05))),
        backoff_base_s=0.1,
        backoff_max_s=5.0,
        retry_after_max_s=RETRY_AFTER_MAX_S,
    )
    lives = draw(st.lists(st.lists(sizes, max_size=20), min_size=1, max_size=max_lives))
    return Case(
        policy,
        draw(st.sampled_from((3_000, 20_000, 1_000_000))),
        draw(st.lists(reactions, max_size=60)),
        lives,
        draw(st.lists(st.integers(0, 6), min_size=1, max_size=8)),
        draw(st.integers(0, 40)),
        draw(st.booleans()),
        draw(st.integers(0, 1_000)),
    )


@dataclass
class World:
    """World of a case, in the end."""

    gate: SimulatedGate
    accepted: list[EventRecord] = field(default_factory=list)
    refused: int = 0
    outcomes: list[SendOutcome] = field(default_factory=list)
    waits_s: list[tuple[float, Reaction]] = field(default_factory=list)
    max_waiting_bytes: int = 0
    is_folder_empty: bool = True

    def by_id(self) -> dict[str, list[SendOutcome]]:
        """Return the outcomes of each event."""
        found = dict[str, list[SendOutcome]]()
        for outcome in self.outcomes:
            found.setdefault(outcome.event_id, []).append(outcome)
        return found


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder of one example."""
    folder = Path(mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def live(case: Case, world: World, queue: EventQueue, sizes_: list[int], *, is_last: bool) -> None:
    """Run one life."""
    chance = Random(case.seed)
    driver = ClientDriver(case.policy, queue, world.gate, chance.random, float(len(world.accepted)))
    for number, size in enumerate(sizes_):
        record = build_record("x" * size, None, None, 1_700_000_000_000_000)
        try:
            driver.append(record)
        except QueueFullError:
            world.refused += 1
            assert queue.waiting_bytes + len(record.item) + 400 > case.max_waiting_bytes
        else:
            world.accepted.append(record)
        world.max_waiting_bytes = max(world.max_waiting_bytes, queue.waiting_bytes)
        for _ in range(case.steps[number % len(case.steps)]):
            driver.step()
    if is_last:
        driver.flush()
        driver.run()
    else:
        driver.step(is_finished=case.is_finished)
    world.outcomes += driver.outcomes
    world.waits_s += driver.waits_s


def run_spooled(case: Case) -> World:
    """Run all lives over one spool."""
    world = World(SimulatedGate(list(case.script)))
    with temporary_folder() as folder:
        for number, sizes_ in enumerate(case.lives):
            queue = SpoolQueue(folder, "orders", case.max_waiting_bytes)
            live(case, world, queue, sizes_, is_last=number == len(case.lives) - 1)
            segments = sorted(queue.folder.glob("*.seg"))
            queue.close()
            assert sum(path.stat().st_size for path in segments) <= case.max_waiting_bytes
            if segments and case.torn_bytes and number < len(case.lives) - 1:
                # What a kill in the middle of a write leaves.
                with segments[-1].open("ab") as file:
                    file.write(b"\x7f\x00\x00\x00torn record that is longer than this"[: case.torn_bytes])
        world.is_folder_empty = not list((folder / "orders").glob("*.seg"))
    return world


def run_in_memory(case: Case) -> World:
    """Run the first life in memory."""
    world = World(SimulatedGate(list(case.script)))
    live(case, world, MemoryQueue(case.max_waiting_bytes), case.lives[0], is_last=True)
    return world


def check_ends(world: World) -> None:
    """Check that each accepted event has an outcome, the right one, under its id."""
    by_id = world.by_id()
    assert set(by_id) == {record.id_text for record in world.accepted}
    events = {record.id_text: record.item for record in world.accepted}
    for event_id, outcomes in by_id.items():
        for outcome in outcomes:
            assert outcome.event == events[event_id]
            if outcome.result is OutcomeResult.REJECTED:
                assert outcome.reason
                assert world.gate.refused[event_id]
            else:
                assert world.gate.taken[event_id]
                assert outcome.result is (OutcomeResult.HELD if outcome.status == 202 else OutcomeResult.ENTERED)


def check_bounds(case: Case, world: World) -> None:
    """Check requests, waits and the queue against the policy."""
    assert world.max_waiting_bytes <= case.max_waiting_bytes
    for ids, body in zip(world.gate.requests, world.gate.bodies, strict=True):
        assert 1 <= len(ids) <= case.policy.batch_max_events
        assert len(body) <= case.policy.batch_max_bytes or len(ids) == 1
    for wait_s, reaction in world.waits_s:
        asked_s = float(reaction.retry_after) if reaction.retry_after.isdigit() else 0.0
        asked_s = min(asked_s, RETRY_AFTER_MAX_S) if reaction.status else 0.0
        assert wait_s <= max(case.policy.backoff_max_s, asked_s) + case.policy.linger_s + 1e-6
        if reaction.status >= 300:
            assert wait_s >= asked_s - 1e-6


@given(cases())
@settings(deadline=None, max_examples=300)
def test_an_event_in_the_spool_outlives_kills(case: Case) -> None:
    """Each event that was accepted ends taken or rejected, under its id, whatever is answered and killed."""
    world = run_spooled(case)
    check_ends(world)
    check_bounds(case, world)
    assert world.is_folder_empty


@given(cases(max_lives=1))
@settings(deadline=None, max_examples=300)
def test_an_event_in_memory_has_one_outcome(case: Case) -> None:
    """Without a kill each event has one outcome, and is not sent after it; requests and waits keep their bounds."""
    world = run_in_memory(case)
    check_ends(world)
    check_bounds(case, world)
    assert all(len(outcomes) == 1 for outcomes in world.by_id().values())
    assert all(count == 1 for count in world.gate.refused.values())


@given(cases())
@settings(deadline=None, max_examples=150)
def test_events_are_sent_in_their_order(case: Case) -> None:
    """The first requests of events, over all lives, come in the order in which they were accepted."""
    world = run_spooled(case)
    first_sent = list(dict.fromkeys(event_id for ids in world.gate.requests for event_id in ids))
    assert first_sent == [record.id_text for record in world.accepted]


@given(cases(), st.data())
@settings(deadline=None, max_examples=100)
def test_a_spool_that_is_damaged_loses_no_whole_record_before(case: Case, data: st.DataObject) -> None:
    """Of a segment with a wrong byte anywhere the events before the damage are sent, and the file is kept."""
    with temporary_folder() as folder:
        queue = SpoolQueue(folder, "orders", MAX_BATCH_BYTES)
        ends = list[int]()
        records = [build_record("x" * min(size, 2_000), None, None, 1) for size in case.lives[0]]
        for record in records:
            queue.append(record)
            ends.append(queue.end_mark)
        queue.close()
        segments = list(queue.folder.glob("*.seg"))
        assert len(segments) == bool(records)
        if not records:
            return
        place = data.draw(st.integers(0, ends[-1] - 1))
        with segments[0].open("r+b") as file:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 0x55]))
        queue = SpoolQueue(folder, "orders", MAX_BATCH_BYTES)
        gate = SimulatedGate([])
        driver = ClientDriver(case.policy, queue, gate, Random(1).random, 0.0)
        driver.run()
        # A damaged length may make a record of what is none; its checksum does not hold then.
        whole = [record.id_text for record, end in zip(records, ends, strict=True) if end <= place]
        sent = [event_id for ids in gate.requests for event_id in ids]
        assert sent[: len(whole)] == whole
        assert set(sent) < {record.id_text for record in records}
        assert queue.unreadable == 1
        assert [path.suffix for path in queue.folder.glob("0*")] == [".unreadable"]
        queue.close()
