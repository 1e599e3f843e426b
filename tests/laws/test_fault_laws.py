"""Laws of a sender in which anything may raise at any time: what was stamped is sent, dropped or a hole."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.packing import PackedBatch
from hopwatch.probes.recorder import Stamp, StampArrays, StampKind, build_batches
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US
from tests.support.fault_injection import UNDER_A_FLUSH, raising
from tests.support.sender_bench import Bench

OF_OBSERVATIONS: Final = {"sink refused", "unsendable", "undelivered"}
"""The causes of drops that come after stamps were joined: one may stand for two of them."""
ERRORS: Final = (RuntimeError, MemoryError)
SIDES: Final = st.sampled_from([StampKind.ARRIVED, StampKind.DEPARTED, StampKind.FILTERED])
MINUTES: Final = st.integers(-2, 2)
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("stamp"), st.tuples(SIDES, st.integers(-1, 3), MINUTES)),
        st.tuples(st.just("arrays"), st.tuples(SIDES, st.integers(1, 5), MINUTES)),
        st.tuples(st.just("drop"), MINUTES),
        st.tuples(st.sampled_from(["flush", "step", "refuse", "take", "lose"]), st.none()),
    ),
    max_size=12,
)
FAULT: Final = st.tuples(
    st.sampled_from(UNDER_A_FLUSH), st.sampled_from(ERRORS), st.integers(1, 6), st.booleans(), st.integers(0, 12)
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep thousands of tracebacks out of the log."""
    log = logging.getLogger("hopwatch.probe")
    before = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(before)


class Host:
    """Plays steps on a sender, and writes down when each stamp was taken, and of which window it is."""

    def __init__(self) -> None:
        """Start with nothing stamped."""
        self.bench = Bench()
        self.stamps: list[tuple[int, int]] = []
        self.lost: list[bytes] = []

    def play(self, steps: list[tuple[str, Any]]) -> None:
        """Make some steps, a second apart; what raises is caught, as the thread does it."""
        for what, given_with in steps:
            self.bench.clock.advance(1)
            with suppress(*ERRORS):
                self.take(what, given_with)

    def take(self, what: str, given_with: Any) -> None:  # noqa: ANN401 - each step has its own
        """Make one step."""
        sender, sink = self.bench.sender, self.bench.sink
        at_us = self.bench.clock.us
        match what, given_with:
            case "stamp", (side, number, minute):
                event_us = EPOCH_US + minute * WINDOW_US
                self.stamps.append((at_us, event_us))
                sender.queue.append(Stamp(side, number, event_us, at_us * 1_000))
            case "arrays", (side, count, minute):
                event_us = EPOCH_US + minute * WINDOW_US
                self.stamps += [(at_us, event_us)] * count
                ids = np.frombuffer(b"".join(map(id_bytes, range(count))), np.uint64).reshape(-1, 2)
                assert sender.append_many(StampArrays(side, ids, np.full(count, event_us), at_us * 1_000), 1_000)
            case "drop", minute:
                event_us = EPOCH_US + minute * WINDOW_US
                self.stamps.append((at_us, event_us))
                sender.drop({(event_us // 1_000, "queue full"): 1})
            case "lose", _:
                if sink.records:
                    self.lost.append(sink.records[-1])
                    sink.failing.append(sink.records.pop())
            case "refuse" | "take", _:
                sink.is_full = what == "refuse"
            case "flush", _:
                sender.flush()
            case _:
                sender.step()


def told_of(batches: list[Batch]) -> Counter[int]:
    """Return of each window how many stamps were sent or told as dropped, at most."""
    found: Counter[int] = Counter()
    for batch in batches:
        for row in batch_observations(batch):
            found[batch.window_start_ms] += (row.in_us is not None) + (row.out_us is not None)
        for drop in batch.drops:
            found[drop.window_start_ms] += drop.count * (1 + (drop.cause in OF_OBSERVATIONS))
    return found


def has_hole(batches: list[Batch]) -> bool:
    """Return whether a number is missing."""
    return [batch.seq for batch in batches] != list(range(len(batches)))


@given(STEPS, FAULT, STEPS)
def test_whatever_raises_every_stamp_is_sent_or_dropped_or_a_hole(
    before: list[tuple[str, Any]], fault: tuple[Any, ...], after: list[tuple[str, Any]]
) -> None:
    """No moment is called complete while a stamp before it is missing, unless a number is; no bye vouches for one."""
    (owner, name), error, times, is_done, _ = fault
    host = Host()
    host.play(before)
    with raising(owner, name, error, times, is_done=is_done):
        host.play(after)
        host.play([("step", None)] * 3)
    host.bench.sink.is_full = False
    host.play([("flush", None)] * 2)
    host.bench.sender.close(1)
    batches = host.bench.batches()
    for number, batch in enumerate(batches):
        so_far = batches[: number + 1]
        told = told_of(so_far)
        stamped = Counter(event_us // 1_000 for at_us, event_us in host.stamps if at_us <= batch.complete_through_us)
        assert stamped <= told or has_hole(so_far), (stamped, told)
    stamped = Counter(event_us // 1_000 for _, event_us in host.stamps)
    assert stamped <= told_of(batches) or has_hole(batches) or batches[-1].kind is not BatchKind.BYE


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize(("owner", "name"), UNDER_A_FLUSH, ids=[name for _, name in UNDER_A_FLUSH])
def test_a_thousand_stamps_outlive_any_function_that_raises(
    owner: object, name: str, times: int, error: type[Exception]
) -> None:
    """None of them vanishes; the bye comes behind all of them, or a number is missing before it."""
    host = Host()
    host.play(
        [("stamp", (StampKind.ARRIVED, number, 0)) for number in range(900)]
        + [("arrays", (StampKind.DEPARTED, 100, 0))]
    )
    host.play([("drop", 0)])
    with raising(owner, name, error, times):
        host.play([("step", None)] * 10)
    host.bench.sender.close(1)
    batches = host.bench.batches()
    assert told_of(batches).total() >= 1_001 or has_hole(batches)


@given(st.integers(1, 3), FAULT)
def test_what_is_offered_completes_a_moment_only_when_all_of_it_was_taken(minutes: int, fault: tuple[Any, ...]) -> None:
    """An offered batch completes a moment only if all of it was taken; otherwise it is offered again."""
    (owner, name), error, times, is_done, _ = fault
    bench, is_taken = Bench(), False
    stamps = [Stamp(StampKind.ARRIVED, 1, EPOCH_US + minute * WINDOW_US, EPOCH_US * 1_000) for minute in range(minutes)]
    packed = build_batches(stamps, 0)[0]
    bench.clock.advance(1)

    def pack(_: int) -> list[PackedBatch]:
        return packed

    with raising(owner, name, error, times, is_done=is_done), suppress(*ERRORS):
        is_taken = bench.sender.offer(pack)
    taken = {batch.window_start_ms for batch in bench.batches()}
    is_complete = any(batch.complete_through_us > EPOCH_US for batch in bench.batches())
    assert len(taken) == minutes or not (is_taken or is_complete)
