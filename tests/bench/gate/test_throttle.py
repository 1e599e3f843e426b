"""Tests of the bench of the throttle: a short run of both, with what producers and consumers saw."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from bench.gate import throttle
from bench.gate.throttle import ThrottleSizes


def test_all_of_it_in_little(tmp_path: Path) -> None:
    """Without a throttle nothing is refused, with it something is, and the messages wait shorter."""
    sizes = ThrottleSizes(offered_per_s=100, consumed_per_s=50, target_s=2.0, seconds=14.0, calm_s=2.0)
    without, with_one = throttle.measure(tmp_path, lambda _: None, sizes)
    assert (without.refused, without.admitted) == (0, 1_400)
    assert with_one.refused > 0
    assert with_one.offered == 1_400
    assert with_one.last_s < without.last_s
    console = Console(width=160)
    with console.capture() as said:
        console.print(throttle.build_table([without, with_one]))
    assert "1,400" in said.get()
