"""Laws of bursts in worlds with a known one, or with none: found to the second, and never made by chance."""

from __future__ import annotations

from collections.abc import Callable

from hopwatch.monitor.kernel.bursts import find_bursts
from tests.laws.burst_worlds import make_world


def test_the_start_of_a_burst_is_found_within_a_second(times: Callable[[int, int], int]) -> None:
    """In at least 95 % of worlds in which a burst loses four messages a second and three times as many as chance."""
    worlds = [make_world(seed, has_burst=True) for seed in range(times(500, 2_000))]
    found = [(find_bursts(counts), burst) for counts, burst in worlds]
    right = [burst is not None and abs(one.start_s - burst[0]) <= 1 for bursts, burst in found for one in bursts[:1]]
    assert sum(right) >= 0.95 * len(worlds)


def test_chance_makes_no_burst(times: Callable[[int, int], int]) -> None:
    """In worlds where all messages are lost alike, however they came, at most one in a thousand has a burst."""
    worlds = [make_world(seed, has_burst=False) for seed in range(times(300, 10_000))]
    assert sum(bool(find_bursts(counts)) for counts, _ in worlds) <= 0.001 * len(worlds)
