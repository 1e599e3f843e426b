"""Tests of the account of a Spark job: what it says, and by what file it goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.probes.contract.batch import Batch, Drop
from hopwatch.probes.spark import job_account
from hopwatch.probes.spark.job_account import UNSEEN_US, JobAccount
from hopwatch.probes.spark.job_state import JobState
from hopwatch.probes.spark.task_stamps import MicroBatch
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.testing import EPOCH_US, ManualClock

QUERY: Final = "11111111-2222-3333-4444-555555555555"


class Transport:
    """Transport of an account, which takes batches or not."""

    def __init__(self) -> None:
        """Take all."""
        self.sent: list[Batch] = []
        self.is_open = True

    def send(self, batches: Sequence[Batch]) -> bool:
        """Take batches."""
        if self.is_open:
            self.sent += batches
        return self.is_open

    @property
    def numbers(self) -> list[int]:
        """The numbers of all batches that were taken."""
        return [batch.seq for batch in self.sent]


@pytest.fixture
def transport() -> Transport:
    """Return an open transport."""
    return Transport()


@pytest.fixture
def state(tmp_path: Path) -> JobState:
    """Return a state that nobody has written."""
    return JobState(tmp_path / "state.json", "orders", "enrich")


def build_account(transport: Transport, state: JobState | None, clock: ManualClock) -> JobAccount:
    """Return the account of one process of the job."""
    return JobAccount("orders", "enrich", "spark-host-7", transport.send, state, clock)


def test_an_account_reaches_back_a_day(transport: Transport, clock: ManualClock) -> None:
    """The first batch completes nothing: the job may have read messages before its first start."""
    account = build_account(transport, None, clock)
    assert account.announce()
    assert account.announce()
    assert [(batch.seq, batch.epoch_us, batch.complete_through_us) for batch in transport.sent] == [
        (0, EPOCH_US - UNSEEN_US, 0)
    ]


def test_it_completes_what_was_read(transport: Transport, clock: ManualClock) -> None:
    """A moment does not go back, and to be alive completes nothing more."""
    account = build_account(transport, None, clock)
    for moment_us in (EPOCH_US, EPOCH_US - 5):
        assert account.advance(moment_us)
    assert account.keep_alive()
    assert [batch.complete_through_us for batch in transport.sent] == [0, EPOCH_US, EPOCH_US, EPOCH_US]
    assert transport.numbers == [0, 1, 2, 3]


def test_the_next_process_sends_the_last_batch_again(transport: Transport, state: JobState, clock: ManualClock) -> None:
    """Nobody knows whether it was sent; with its drops, it counts once."""
    account = build_account(transport, state, clock)
    account.note(MicroBatch(QUERY, 0), {EPOCH_US // 1_000: 3})
    account.advance(EPOCH_US)
    account.advance(EPOCH_US + 1)
    first = list(transport.sent)
    transport.sent.clear()
    clock.advance(600)
    later = build_account(transport, state, clock)
    assert later.announce()
    assert later.query == QUERY
    assert [(batch.probe, batch.epoch_us) for batch in transport.sent] == [("spark-host-7", first[0].epoch_us)] * 2
    assert transport.numbers == [first[-1].seq, first[-1].seq + 1]
    assert transport.sent[0].drops == first[-1].drops
    assert first[0].drops == (Drop(EPOCH_US // 1_000, 3, "sink refused"),)
    assert {batch.complete_through_us for batch in transport.sent} == {EPOCH_US + 1}


@pytest.mark.parametrize(
    ("noted", "next_one", "has_hole"),
    [
        (None, MicroBatch(QUERY, 0), False),
        (None, MicroBatch(QUERY, 1), True),
        (MicroBatch(QUERY, 4), MicroBatch(QUERY, 4), False),
        (MicroBatch(QUERY, 4), MicroBatch(QUERY, 5), False),
        (MicroBatch(QUERY, 4), MicroBatch(QUERY, 6), True),
        (MicroBatch(QUERY, 4), MicroBatch("another", 0), True),
        (MicroBatch(QUERY, 4), None, True),
    ],
)
def test_the_number_of_the_next_micro_batch_proves_that_none_is_missing(
    noted: MicroBatch | None,
    next_one: MicroBatch | None,
    has_hole: bool,  # noqa: FBT001
    transport: Transport,
    state: JobState,
    clock: ManualClock,
) -> None:
    """A number is left out if it does not, or if the query is idle before there is one."""
    account = build_account(transport, state, clock)
    account.announce()
    if noted is not None:
        account.note(noted, {})
    later = build_account(transport, state, clock)
    later.announce()
    if next_one is not None:
        later.note(next_one, {})
    later.advance(EPOCH_US)
    later.advance(EPOCH_US)
    numbers = sorted(set(transport.numbers))
    assert (numbers != list(range(len(numbers)))) is has_hole
    assert numbers[-1] - numbers[-2] == 1


def test_a_process_that_closed_has_noted_all(transport: Transport, state: JobState, clock: ManualClock) -> None:
    """The next one goes on without a hole, though its query is idle; unless it was in doubt itself."""
    build_account(transport, state, clock).close(is_complete=True)
    later = build_account(transport, state, clock)
    later.advance(EPOCH_US)
    assert transport.numbers == [0, 1]
    in_doubt = build_account(transport, state, clock)
    in_doubt.close(is_complete=True)
    build_account(transport, state, clock).advance(EPOCH_US)
    assert transport.numbers == [0, 1, 1, 3, 4]


def test_a_batch_that_is_refused_is_first_in_line(transport: Transport, clock: ManualClock) -> None:
    """Nothing else is sent before it."""
    account = build_account(transport, None, clock)
    account.announce()
    account.note(MicroBatch(QUERY, 0), {EPOCH_US // 1_000: 3})
    transport.is_open = False
    assert not account.advance(EPOCH_US)
    assert not account.keep_alive()
    transport.is_open = True
    assert account.advance(EPOCH_US + 1)
    assert [(batch.seq, len(batch.drops)) for batch in transport.sent] == [(0, 0), (1, 1), (2, 0), (3, 0)]


def test_drops_of_too_many_windows_are_a_hole(
    transport: Transport, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: a number that is left out stands for them."""
    monkeypatch.setattr(job_account, "MAX_WINDOWS", 2)
    account = build_account(transport, None, clock)
    account.announce()
    account.note(MicroBatch(), {EPOCH_US // 1_000 + 60_000 * place: 1 for place in range(3)})
    account.advance(EPOCH_US)
    assert [(batch.seq, batch.drops) for batch in transport.sent] == [(0, ()), (2, ())]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"node": "the node other of orders"}, "version 1 of 'the node other of orders'"),
        ({"probe": 7}, "7 is no str"),
        ({"seq": "x"}, "'x' is no int"),
        ({"is_complete": "yes"}, "'yes' is no bool"),
        ({"drops": [1]}, r"\[1\] is no dict"),
        ({"told": {"1": "two"}}, "'two' is no int"),
    ],
)
def test_a_file_of_something_else_is_refused(
    change: dict[str, Any], told: str, transport: Transport, state: JobState, clock: ManualClock
) -> None:
    """Its error says what it has, and what to do."""
    build_account(transport, state, clock).announce()
    state.path.write_text(json.dumps(json.loads(state.path.read_text()) | change))
    with pytest.raises(TapUsageError, match=told) as refused:
        state.load()
    assert str(refused.value).endswith("name another file with state=, or delete it to begin anew")


def test_a_state_that_cannot_be_written_stops_the_account(
    transport: Transport, state: JobState, clock: ManualClock
) -> None:
    """Nothing is told that is not kept before, and nothing is left out once it can be written."""
    account = build_account(transport, state, clock)
    account.announce()
    account.note(MicroBatch(QUERY, 0), {EPOCH_US // 1_000: 3})
    blocked = state.path.with_name(f".{state.path.name}.new")
    blocked.mkdir()
    with pytest.raises(TapSourceError, match="without it a restart stamps again"):
        account.advance(EPOCH_US)
    assert transport.numbers == [0]
    blocked.rmdir()
    assert account.advance(EPOCH_US)
    assert [(batch.seq, len(batch.drops)) for batch in transport.sent] == [(0, 0), (1, 1), (2, 0), (3, 0)]
