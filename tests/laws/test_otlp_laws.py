"""Laws of the OTLP tap: whatever SDKs drop, hide or lie about, no message is called lost that arrived."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.otlp_worlds import FAULTS, OtlpWorld
from tests.model import model
from tests.support.examples import examples

STREAMS: Final = {
    "orders": {
        "path": "shop -> billing",
        "stamps": {"shop": "out", "billing": "in"},
        "transit": "30s",
        "settle": "30s",
    }
}


def judge(world: OtlpWorld) -> dict[int, dict[str, Any]]:
    """Return the windows of a world, by their start in µs."""
    told = model.report(STREAMS, world.spool)["streams"][0]["windows"]
    return {round(datetime.fromisoformat(window["window_start"]).timestamp()) * 1_000_000: window for window in told}


@settings(max_examples=examples(40))
@given(
    st.integers(0, 2**32),
    st.frozensets(st.sampled_from(FAULTS), max_size=3),
    st.sampled_from([1, 1, 2, None]),
    st.integers(160, 250),
)
def test_what_arrived_is_never_surely_lost(
    seed: int, faults: frozenset[str], instances: int | None, seconds: int
) -> None:
    """In each minute at most so many messages are surely lost as were lost, whatever goes wrong."""
    with tempfile.TemporaryDirectory() as folder:
        world = OtlpWorld(Path(folder), seed, faults, instances)
        world.run(seconds, 130)
        for start_us, window in judge(world).items():
            assert window["lost_lower"] <= world.lost[start_us], window["reasons"]
