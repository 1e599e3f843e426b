"""Tests of the random kills of a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.service.kills import KILLABLE, LAST_RATIO, NODES_OF, draw_kills, name_brokers
from hopwatch.demo.stream import SERVICE_NODES


@given(seed=st.integers(), count=st.integers(0, 60), brokers=st.sampled_from([0, 3]))
def test_kills_are_drawn_from_all_processes_in_order(seed: int, count: int, brokers: int) -> None:
    """As many as asked for, sorted, each before the last of the work, and the same for the same seed."""
    processes = (*KILLABLE, *name_brokers(brokers))
    kills = draw_kills(seed, count, processes)
    assert kills == sorted(kills) == draw_kills(seed, count, processes)
    assert len(kills) == count
    assert all(0 <= kill.at_ratio < LAST_RATIO and kill.process in processes for kill in kills)


def test_all_are_hit_in_the_long_run() -> None:
    """Of 200 kills each process gets some."""
    processes = (*KILLABLE, *name_brokers(3))
    assert {kill.process for kill in draw_kills(0, 200, processes)} == set(processes)


def test_each_killed_process_blurs_nodes_of_the_stream() -> None:
    """The nodes that a process stamps are among those of which nothing more is claimed."""
    assert set(NODES_OF) == set(KILLABLE)
    assert {node for nodes in NODES_OF.values() for node in nodes} == set(SERVICE_NODES)
