"""Laws of the journeys that are kept with lost ids: what the segments say, and the same in any order."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopwatch.monitor.kernel import journeys
from hopwatch.monitor.kernel.journeys import BatchSource, Journeys, RecordColumns
from hopwatch.monitor.lookup import journey, missing_messages
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.pathway import MAX_NODES
from hopwatch.monitor.store import reader
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import scenario
from tests.model.random_choices import Dials, dials
from tests.support.examples import examples
from tests.support.micro_batches import run_once
from tests.support.model_comparison import prepared_store, rules_of


@settings(max_examples=examples(25))
@given(thrown=dials(), shards=st.integers(1, 3))
def test_a_kept_journey_is_what_the_segments_say(thrown: Dials, shards: int) -> None:
    """Stamp by stamp, of nodes that are declared; where records come once and in time, all of them."""
    with TemporaryDirectory() as name:
        folder, spool = Path(name), Path(name) / "spool"
        spool.mkdir()
        made = scenario.generate(thrown, spool)
        paths = sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))
        engine, rules = prepared_store(folder, "once.db"), rules_of(folder, made.streams, shards=shards)
        run_once(engine, rules, paths, spool)
        accounts = reader.read_report(engine)["accounts"]
        all_count = not any(accounts[name] for name in ("duplicate_batches", "too_late", "implausible", "set_aside"))
        lost = {
            (stream, one) for stream, of in rules.items() for node in of.pathway.nodes
            for one in reader.read_lost_ids(engine, stream, node)
        }  # fmt: skip
        for stream, message_id in sorted(lost)[:50]:
            nodes = rules[stream].pathway.nodes
            here = [each for each in journey.read_stamps(paths, (message_id,), stream) if each.node in nodes]
            for found in missing_messages.find_losses(str(engine.url), (message_id,), stream):
                start_us = found.window_start_us
                told = Counter(_said(each) for each in here if each.event_time_us // WINDOW_US * WINDOW_US == start_us)
                kept = Counter(map(_said, found.stamps))
                assert found.stamp_count == kept.total() > 0
                assert kept <= told
                assert kept == told or not all_count
                assert set(journey.unite_stamps(here, found.stamps)) == set(journey.unite_stamps(here))


def _said(stamp: MessageStamp) -> tuple[Any, ...]:
    return tuple(stamp[: MessageStamp._fields.index("id_kind")])


STAMP: Final = st.tuples(st.integers(0, 3), *[st.integers(-5, 5)] * 3, st.integers(0, 2), st.sampled_from((0, 1, 255)))
"""Message, event time, lags, outcome, reason."""
BATCHES: Final = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.lists(STAMP, max_size=5)), max_size=5
)
"""Node, probe and stamps of each."""
Batch = tuple[str, str, list[tuple[int, ...]]]
REASONS: Final = ("late", "small")


def _journeys(batches: list[Batch]) -> Journeys:
    """Return the journeys of four messages, the nodes in alphabetical order."""
    (whole,) = _build_lists(batches, [4])
    return whole


def _build_lists(batches: list[Batch], counts: list[int]) -> list[Journeys]:
    """Return the journeys of four messages, which stand in lists of so many each."""
    sources, places = [], []
    for number, (node, probe, stamps) in enumerate(sorted(batches, key=lambda batch: batch[0])):
        sources.append(BatchSource(node, partial(_recorded, probe, stamps), None))
        places += [(stamp[0], number, row) for row, stamp in enumerate(stamps)]
    message, batch, row = np.array(sorted(places, key=lambda place: place[0]), np.int64).reshape(-1, 3).T
    return journeys.build_journeys(counts, message, batch, row, sources)


def _recorded(probe: str, stamps: list[tuple[int, ...]], rows: NDArray[np.int64]) -> RecordColumns:
    columns = np.array([stamps[row] for row in rows.tolist()], np.int64).T[1:]
    event_time_us, lag_in_us, lag_out_us, outcome, reason = columns
    return RecordColumns(
        probe, event_time_us, lag_in_us, lag_out_us, outcome.astype(np.uint8), reason.astype(np.uint8), REASONS,
        np.zeros(len(rows), np.int64),
    )  # fmt: skip


@pytest.mark.parametrize("most", [1, 3, journeys.MAX_STAMPS])
@given(batches=BATCHES, ends=st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_lists_that_are_read_together_are_as_each_alone(most: int, batches: list[Batch], ends: tuple[int, int]) -> None:
    """To the byte; a list may be empty, and a message without a stamp at its end."""
    bounds = [0, *sorted(ends), 4]
    with mock.patch.object(journeys, "MAX_STAMPS", most):
        whole, lists = _journeys(batches), _build_lists(batches, [end - start for start, end in pairwise(bounds)])
        for found, (start, end) in zip(lists, pairwise(bounds), strict=True):
            own = [
                (node, probe, [(stamp[0] - start, *stamp[1:]) for stamp in stamps if start <= stamp[0] < end])
                for node, probe, stamps in batches
            ]
            (alone,) = _build_lists(own, [end - start])
            assert found.pack() == alone.pack()
            told = [whole.read_stamps(place) for place in range(start, end)]
            assert [found.read_stamps(place) for place in range(end - start)] == told


@pytest.mark.parametrize("most", [1, 3, journeys.MAX_STAMPS])
@given(batches=BATCHES, chance=st.randoms())
def test_batches_and_their_order_change_nothing(most: int, batches: list[Batch], chance: Any) -> None:  # noqa: ANN401
    """To the byte, however many stamps are kept: stamps one by one, shuffled, in parts that are joined."""
    with mock.patch.object(journeys, "MAX_STAMPS", most):
        whole = _journeys(batches)
        alone = [(node, probe, [stamp]) for node, probe, stamps in batches for stamp in stamps]
        chance.shuffle(alone)
        assert _journeys(alone).pack() == whole.pack()
        parts = [(1, whole.taken(np.array([place]))) for place in range(4)]
        assert journeys.join_journeys(parts).pack() == whole.pack()
        chosen = np.array([True, False, True, True])
        assert [whole.taken(chosen).read_stamps(place) for place in range(3)] == [
            whole.read_stamps(place) for place in (0, 2, 3)
        ]


@pytest.mark.parametrize("most", [1, 2, 3, journeys.MAX_STAMPS])
@given(batches=BATCHES)
def test_every_stamp_is_told(most: int, batches: list[Batch]) -> None:
    """Under its message with the names of node, probe and reason; of too many one of each node before any other."""
    with mock.patch.object(journeys, "MAX_STAMPS", most):
        found = _journeys(batches)
        for place in range(4):
            told = Counter(
                (node, probe, *stamp[1:5], dict(enumerate(REASONS)).get(stamp[5], ""))
                for node, probe, stamps in batches for stamp in stamps if stamp[0] == place
            )  # fmt: skip
            order = ("node", "probe", "event_time_us", "lag_in_us", "lag_out_us", "outcome", "reason")
            count, stamps = found.read_stamps(place)
            kept = Counter(tuple(one[name] for name in order) for one in stamps)
            assert count == told.total()
            assert kept <= told
            assert kept.total() == min(count, most)
            nodes = {one[0] for one in told}
            assert len({one[0] for one in kept}) == min(len(nodes), most)


def test_enough_stamps_are_kept_for_every_node() -> None:
    """A message that went through all nodes of the longest pathway has one of each."""
    assert journeys.MAX_STAMPS >= MAX_NODES
