"""Tests of docs/OUTLIERS.md: its numbers are those of the detector."""

from __future__ import annotations

from typing import Final

import pytest

from bench import cli, noise
from bench.noises import NOISES
from hopwatch.monitor.outliers import state, step
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.outliers.views import VIEWS
from tests.repository import ROOT

PAGE: Final = " ".join((ROOT / "docs" / "OUTLIERS.md").read_text("utf-8").split())
COMPILED: Final = " ".join((ROOT / "docs" / "adr" / "0060-the-detector-is-compiled.md").read_text("utf-8").split())


@pytest.mark.parametrize(
    "words",
    [
        f"in {len(VIEWS)} ways of {len({view.family for view in VIEWS})} families",
        f"The largest values of the past, {state.TAIL_VALUES} at most of the last {step._HALVED_AT // 2:,} to 8,000",
        f"what came within the last {step._MIN_BLOCK} to {step._MAX_BLOCK} values",
        f"each {step.MAX_SURPRISE:.0f} at most, plus {step._STEP_WEIGHT} · log10",
        f"a score of {step.NOTICE}, a *notice*",
        f"after {step.MIN_COOL} to {step.MAX_COOL} values below",
        f"an *outlier* with {step.OUTLIER}, if the series is a day old",
        f"After a gap of {step._LONG_GAP:.0f} steps",
        f"The first {step._JUDGED_FROM} values",
        f"score below {step.NOTICE / 2}:",
        f"{state.STATE.itemsize:,} bytes a series",
        f"make bench ARGS={cli.Measure.OUTLIERS}",
        f"make bench ARGS={cli.Measure.NOISE}",
        f'make bench ARGS="{cli.Measure.NAB} --data DIR --scorer FILE"',
        f"on {noise.NOISE_SERIES} seeded series of four weeks",
        f"{len(NOISES)} kinds",
    ],
)
def test_its_numbers_are_those_of_the_detector(words: str) -> None:
    """Views, tail, thresholds, cool-down, memory."""
    assert words in PAGE


def test_the_decision_names_the_size_that_it_is() -> None:
    """The record's bytes."""
    assert f"one numpy record of {state.STATE.itemsize:,} bytes" in COMPILED


def test_every_quantity_is_named() -> None:
    """Those of a pipeline; any other number is called a value."""
    words = ("lag in", "lag out", "the time inside", "loss ratio", "messages", "duplicates")
    assert all(word in PAGE for word in words)
    assert len(words) == len(Quantity) - 1
