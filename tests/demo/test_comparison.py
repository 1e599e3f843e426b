"""Tests of injected against measured: an honest monitor agrees with the truth, and every dishonest one is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.demo.comparison import compare
from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.entrance.rejections import Rejection
from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.stream import NODES
from hopwatch.demo.truth import NodeAction
from tests.demo.simulation import PaperDemo
from tests.support.examples import examples

Change = Callable[[dict[str, Any]], None]

MANY = Faults(
    seed=3,
    nodes={
        "ingest": NodeFaults(drop_ratio=0.05, filter_ratio=0.05, delay_s=0.5),
        "router": NodeFaults(drop_ratio=0.1, duplicate_ratio=0.1, skew_s=-5.0),
        "norm": NodeFaults(reject_ratio=0.1, duplicate_ratio=0.1, delay_s=2.0),
        "connector": NodeFaults(drop_ratio=0.1, skew_s=7.0),
    },
)


def paper_demo(folder: Path, faults: Faults, count: int = 150) -> PaperDemo:
    """Return a demo that has sent ``count`` messages, one a second."""
    demo = PaperDemo(folder / "run", faults)
    demo.send(range(count))
    return demo


def differing(faults: Faults, demo: PaperDemo, change: Change = lambda _: None) -> list[ComparisonLine]:
    """Return the lines that do not hold."""
    return [line for line in compare(faults, demo.truth(), demo.measured(change)) if not line.holds]


ratios = st.sampled_from([0.0, 0.02, 0.2])
node_faults = st.builds(
    NodeFaults,
    drop_ratio=ratios,
    filter_ratio=ratios,
    reject_ratio=ratios,
    duplicate_ratio=ratios,
    delay_s=st.sampled_from([0.0, 0.5, 5.0]),
    skew_s=st.sampled_from([0.0, -30.0, -1.5, 4.0]),
)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 99), nodes=st.dictionaries(st.sampled_from(NODES), node_faults))
def test_an_honest_monitor_agrees_with_the_truth(seed: int, nodes: dict[str, NodeFaults]) -> None:
    """An honest monitor agrees with the truth under any faults."""
    faults = Faults(seed, nodes)
    with TemporaryDirectory() as folder:
        assert differing(faults, paper_demo(Path(folder), faults)) == []


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 99), nodes=st.dictionaries(st.sampled_from(NODES), node_faults))
def test_behind_a_gate_an_honest_monitor_agrees_too(seed: int, nodes: dict[str, NodeFaults]) -> None:
    """Behind a gate, rejected events are no loss, and injected losses are found at their nodes."""
    faults = Faults(seed, {**nodes, "gate": NodeFaults(reject_ratio=0.1)})
    with TemporaryDirectory() as folder:
        demo = PaperDemo(Path(folder) / "run", faults, has_gate=True)
        demo.send(range(100))
        truth, measured = demo.truth(), demo.measured()
        lines = compare(faults, truth, measured, rejections=[Rejection("wrong type", 3, 2)])
    assert [(line.what, line.node) for line in lines if not line.holds] == [("rejected, wrong type", "gate")]
    (rejected,) = [line for line in lines if (line.what, line.node) == ("rejected", "gate")]
    assert rejected.injected == str(len(truth.ids("gate", NodeAction.REJECTED)))


def at(node: str, name: str, by: int) -> Change:
    """Return what makes the report wrong by so much in one number of a node, in its first window."""

    def change(report: dict[str, Any]) -> None:
        report["streams"][0]["windows"][0]["nodes"][NODES.index(node)][name] += by

    return change


def end_to_end(name: str, by: int) -> Change:
    """Return what makes the report wrong by so much in one number of the first window."""

    def change(report: dict[str, Any]) -> None:
        report["streams"][0]["windows"][0][name] += by

    return change


def say_verdict(verdict: str) -> Change:
    """Return what gives the first window another verdict."""

    def change(report: dict[str, Any]) -> None:
        report["streams"][0]["windows"][0]["verdict"] = verdict

    return change


def forget_window(report: dict[str, Any]) -> None:
    """Leave the last window out."""
    del report["streams"][0]["windows"][-1]


def refuse(report: dict[str, Any]) -> None:
    """Say that a record was set aside."""
    report["accounts"]["set_aside"] = {"bad_crc": 1}


def shift(node: str, lag: str, by_us: int) -> Change:
    """Return what moves the percentiles of a lag in every window."""

    def change(report: dict[str, Any]) -> None:
        for window in report["streams"][0]["windows"]:
            for percentile in ("p50", "p95"):
                window["nodes"][NODES.index(node)][lag][percentile] += by_us

    return change


@pytest.mark.parametrize(
    ("change", "what", "node"),
    [
        (end_to_end("known", 1), "messages", ""),
        (end_to_end("delivered", -1), "delivered", ""),
        (end_to_end("lost", 1), "lost end to end", ""),
        (end_to_end("filtered", 1), "windows, and those that add up", ""),
        (at("router", "loss", 1), "lost ids", "router"),
        (at("ingest", "filtered", -1), "filtered", "ingest"),
        (at("norm", "rejected", 1), "rejected", "norm"),
        (at("connector", "rejected", 1), "rejected", "connector"),
        (at("router", "duplicates_out", -1), "duplicates out", "router"),
        (at("connector", "duplicates_in", 1), "duplicates in", "connector"),
        (at("norm", "dropped", 1), "dropped by the probe", "norm"),
        (shift("norm", "lag_out_us", -600_000), "delay, p50 out less in", "norm"),
        (shift("ingest", "inside_us", -900_000), "delay, p95 inside", "ingest"),
        (shift("connector", "lag_in_us", 600_000), "clock skew, p50 of lag", "connector"),
        (shift("router", "lag_in_us", -600_000), "clock skew, p50 of lag", "router"),
        (at("router", "lag_negative", -1), "negative lags", "router"),
        (at("norm", "lag_negative", 1), "negative lags", "norm"),
        (say_verdict("CLEAN"), "verdicts", ""),
        (say_verdict("UNKNOWN"), "verdicts", ""),
        (forget_window, "verdicts", ""),
        (refuse, "refused by the monitor", ""),
    ],
)
def test_every_wrong_number_is_caught(tmp_path: Path, change: Change, what: str, node: str) -> None:
    """A report that is wrong in one place differs in the line of that place."""
    lines = differing(MANY, paper_demo(tmp_path, MANY), change)
    assert (what, node) in [(line.what, line.node) for line in lines]


def test_an_id_that_is_not_the_dropped_one_is_caught(tmp_path: Path) -> None:
    """The right number of wrong ids is no agreement, and the line names them."""
    demo = paper_demo(tmp_path, MANY)
    measured = demo.measured()
    lost = measured.lost_ids("router")
    swapped = min(lost)
    lost.remove(swapped)
    lost.add(b"\xff" * 16)
    (line,) = [line for line in compare(MANY, demo.truth(), measured) if not line.holds]
    assert (line.what, line.node) == ("lost ids", "router")
    assert f"1 missing (first {swapped.hex()}), 1 too many (first {'ff' * 16})" in line.measured


def test_of_more_ids_than_the_store_keeps_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one id a window kept, the kept ones have to be dropped ones, and the number of all has to be right."""
    monkeypatch.setattr("hopwatch.demo.measurements.MAX_STORED_LOST_IDS", 1)
    demo = paper_demo(tmp_path, MANY)
    measured = demo.measured()
    for node in NODES:
        first_of_minute: dict[int, bytes] = {}
        for lost in sorted(measured.lost_ids(node)):
            first_of_minute.setdefault((int.from_bytes(lost[:8], "big") - 1) // 60, lost)
        assert len(first_of_minute) < len(measured.lost_ids(node)) or node == "norm"
        measured.lost_ids(node).intersection_update(first_of_minute.values())
    assert [line for line in compare(MANY, demo.truth(), measured) if not line.holds] == []
    measured.lost_ids("router").pop()
    assert [line.node for line in compare(MANY, demo.truth(), measured) if not line.holds] == ["router"]


BLURRED = Faults(
    seed=3,
    nodes={"router": NodeFaults(drop_ratio=0.1), "norm": NodeFaults(drop_ratio=0.1)},
    kills=(Kill("norm", 60.0),),
)


def hole(node: str) -> Change:
    """Return what an honest monitor says when a node's books have a hole: at most what it knows, and UNKNOWN."""

    def change(report: dict[str, Any]) -> None:
        for window in report["streams"][0]["windows"]:
            entry = window["nodes"][NODES.index(node)]
            window["lost_lower"] -= entry["loss"]
            window["lost_upper"] = entry["loss_upper"] = None
            entry["loss_lower"] = 0
            if not window["lost_lower"]:
                window["verdict"] = "UNKNOWN"

    return change


def test_after_a_kill_less_may_be_said(tmp_path: Path) -> None:
    """Bounds around the truth and UNKNOWN are right where the probe of a killed node could not tell."""
    demo = paper_demo(tmp_path, BLURRED)
    lines = compare(BLURRED, demo.truth(), demo.measured(hole("norm")))
    assert [line for line in lines if not line.holds] == []
    assert {line.what: line.relation for line in lines} == {
        "messages": "=",
        "delivered": "=",
        "lost end to end": "∈",
        "windows, and those that add up": "=",
        "lost ids": "⊆",
        "lost by kills": "≥",
        "verdicts": "≥",
        "refused by the monitor": "=",
    }


RELIABLE = Faults(BLURRED.seed, {"router": NodeFaults(drop_ratio=0.1)}, BLURRED.kills)


def test_over_reliable_links_a_kill_takes_nothing(tmp_path: Path) -> None:
    """Over reliable links a kill loses nothing, and the comparison holds."""
    faults = replace(RELIABLE, nodes={**RELIABLE.nodes, "norm": NodeFaults(duplicate_ratio=0.2)})
    demo = paper_demo(tmp_path, faults)
    lines = compare(faults, demo.truth(), demo.measured(hole("norm")), is_reliable=True)
    assert [line for line in lines if not line.holds] == []
    (kills,) = [line for line in lines if line.what == "lost by kills"]
    assert (kills.injected, kills.relation, kills.measured) == ("0", "=", "0 surely")
    sides = {(line.what, line.node): line.relation for line in lines if line.what.startswith("duplicates")}
    assert sides[("duplicates out", "norm")] == "≥"
    assert ("duplicates in", "norm") not in sides
    assert sides[("duplicates in", "connector")] == "="


def test_over_reliable_links_a_loss_by_a_kill_is_caught(tmp_path: Path) -> None:
    """Over reliable links a loss by a kill is a difference, whether it is real or only reported."""
    drops = paper_demo(tmp_path / "drops", BLURRED)
    drops.layout.truth_log("norm").unlink()  # nobody says that norm dropped them: so the kill took them
    calls = paper_demo(tmp_path / "calls", RELIABLE)
    called = calls.measured(at("norm", "loss_lower", 1))
    called.lost_ids("norm").add(calls.delivered[0])
    for demo, measured in ((drops, drops.measured(hole("norm"))), (calls, called)):
        lines = compare(RELIABLE, demo.truth(), measured, is_reliable=True)
        assert "lost by kills" in [line.what for line in lines if not line.holds]


def claim_too_much(report: dict[str, Any]) -> None:
    """Call more surely lost than was."""
    hole("norm")(report)
    report["streams"][0]["windows"][0]["lost_lower"] = 99


def call_it_clean(report: dict[str, Any]) -> None:
    """Call a window clean in which messages were lost."""
    hole("norm")(report)
    report["streams"][0]["windows"][0]["verdict"] = "CLEAN"


def bound_too_low(report: dict[str, Any]) -> None:
    """Put the upper bound below what was lost."""
    hole("norm")(report)
    report["streams"][0]["windows"][0]["lost_upper"] = 0


@pytest.mark.parametrize(
    ("change", "what"),
    [(claim_too_much, "lost end to end"), (bound_too_low, "lost end to end"), (call_it_clean, "verdicts")],
)
def test_after_a_kill_nothing_false_may_be_said(tmp_path: Path, change: Change, what: str) -> None:
    """Too high a lower bound, too low an upper one, and a CLEAN over a loss are caught."""
    assert what in [line.what for line in differing(BLURRED, paper_demo(tmp_path, BLURRED), change)]


def test_surely_lost_has_to_be_really_lost(tmp_path: Path) -> None:
    """An id that was delivered, or that nobody created, must not be among the surely lost of a killed node."""
    demo = paper_demo(tmp_path, BLURRED)
    for wrong in (demo.delivered[0], b"\xff" * 16):
        measured = demo.measured()
        measured.lost_ids("norm").add(wrong)
        lines = [line for line in compare(BLURRED, demo.truth(), measured) if not line.holds]
        assert {(line.what, line.node) for line in lines} == {("lost ids", "norm"), ("lost by kills", "")}
        assert all(f"1 too many (first {wrong.hex()})" in line.measured for line in lines)


@pytest.mark.parametrize(("more", "differ"), [(0, set()), (1, {("lost ids", "norm"), ("lost by kills", "")})])
def test_so_many_surely_lost_as_were_lost_may_be_said_where_nobody_knows_which(
    tmp_path: Path, more: int, differ: set[tuple[str, str]]
) -> None:
    """A node that dropped stamps has lost at least what they do not explain: not one more than was."""
    demo = paper_demo(tmp_path, BLURRED)

    def explain(report: dict[str, Any]) -> None:
        for window in report["streams"][0]["windows"]:
            entry = window["nodes"][NODES.index("norm")]
            entry["loss_lower"], entry["loss"] = entry["loss"] + more, entry["loss"] + 3

    measured = demo.measured(explain)
    lines = [line for line in compare(BLURRED, demo.truth(), measured) if not line.holds]
    assert {(line.what, line.node) for line in lines} == differ
    assert all(line.measured.endswith(" too many") for line in lines)
