"""Tests of ``--soak``: what is marked for it is left out without it, and not told as skipped."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.repository import ROOT

COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/e2e/test_false_loss.py")


@pytest.mark.parametrize(
    ("flags", "told"),
    [((), "51/111 tests collected (60 deselected)"), (("--soak",), "111 tests collected")],
    ids=["as a rule", "soak"],
)
def test_what_is_marked_is_for_soak(flags: tuple[str, ...], told: str) -> None:
    """Of the ends of replicas each is there at every node; with the flag at every moment too."""
    ended = subprocess.run([*COLLECT, *flags], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith(told)


def test_a_test_asks_how_often(request: pytest.FixtureRequest) -> None:
    """The first number as a rule, the second one with the flag."""
    times = request.getfixturevalue("times")
    assert times(2, 20) == (20 if request.config.getoption("--soak") else 2)
