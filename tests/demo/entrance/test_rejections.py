"""Tests of the account of what was broken, and of its lines in the comparison."""

from __future__ import annotations

from pathlib import Path

from hopwatch.demo.entrance.answers import GateAnswer
from hopwatch.demo.entrance.breakage import BREAKAGES
from hopwatch.demo.entrance.rejections import (
    Rejection,
    Rejections,
    compare_rejections,
    describe_rejections,
    read_rejections,
)

ENTERED = GateAnswer(201)
WRONG_TYPE = BREAKAGES[0]


def test_the_account_survives_its_process(tmp_path: Path) -> None:
    """Kinds in the order of their names, with the first reason; without a file there are none."""
    path, made = tmp_path / "gate.json", Rejections()
    assert read_rejections(path) == []
    made.note(BREAKAGES[1], GateAnswer(422, BREAKAGES[1].place, "Field required"))
    for detail in ("Input should be a valid integer", "another"):
        made.note(WRONG_TYPE, GateAnswer(422, WRONG_TYPE.place, detail))
    made.note(None, ENTERED)
    made.write(path)
    assert read_rejections(path) == [
        Rejection("missing field", 1, 1, "/data/carrier Field required"),
        Rejection("wrong type", 2, 2, "/data/distance Input should be a valid integer"),
    ]


def test_a_gate_that_errs_is_told(tmp_path: Path) -> None:
    """A bad event that it let in, one that it rejects for another reason, a good one that it rejects."""
    made = Rejections()
    made.note(WRONG_TYPE, ENTERED)
    made.note(BREAKAGES[1], GateAnswer(422, "/data/flight", "Field required"))
    made.note(None, GateAnswer(422, "/data/flight", "Field required"))
    made.write(tmp_path / "gate.json")
    found = compare_rejections(read_rejections(tmp_path / "gate.json"))
    assert [(line.what, line.node, line.injected, line.measured) for line in found] == [
        ("rejected, missing field", "gate", "1", "0"),
        ("rejected, nothing wrong", "gate", "0", "1"),
        ("rejected, wrong type", "gate", "1", "0"),
    ]
    assert not any(line.holds for line in found)


def test_reasons_are_a_line_each() -> None:
    """Those that the gate gave; none without any."""
    assert describe_rejections([]) == []
    assert describe_rejections(
        [Rejection("wrong type", 1_000, 1_000, "/data/distance no integer"), Rejection("odd", 1)]
    ) == [
        "what the gate said of events that it rejected:",
        "  wrong type, 1,000 times, such as: /data/distance no integer",
    ]
