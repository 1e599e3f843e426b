"""Tests of the account of sender and receivers, and of the lines that hold it against Hopwatch's report."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.faults import Faults, Kill
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.service.account import ServiceAccount, build_account, read_receiver, read_reported
from hopwatch.demo.service.comparison import compare_account
from hopwatch.demo.stream import RECEIVERS, SERVICE_NODES, STREAM
from hopwatch.demo.truth import NodeAction, Truth, TruthLog

IDS = [uuid.UUID(int=number + 1).bytes for number in range(10)]
Deeds = list[tuple[str, NodeAction, Sequence[bytes]]]
HEALTHY: Deeds = [
    ("gate", NodeAction.CREATED, IDS),
    ("gate", NodeAction.HANDED_ON, IDS[:9]),
    ("gate", NodeAction.REJECTED, IDS[9:]),
    ("router", NodeAction.HANDED_ON, IDS[:8]),
    ("router", NodeAction.DROPPED, IDS[8:9]),
    ("norm", NodeAction.HANDED_ON, IDS[:8]),
    ("mainline", NodeAction.HANDED_ON, IDS[:3]),
    ("mainline", NodeAction.UNHEARD, IDS[3:4]),
    ("mainline", NodeAction.HANDED_ON, IDS[3:4]),
    ("others", NodeAction.HANDED_ON, IDS[4:7]),
    ("others", NodeAction.REJECTED, IDS[7:8]),
]
"""Ten messages: one is malformed, one dropped, one refused; of one the first answer is not heard."""


def read(folder: Path, deeds: Deeds, kept: Sequence[bytes] = IDS[7:8]) -> ServiceAccount:
    """Return the account of such a run."""
    for node, deed, ids in deeds:
        log = TruthLog(folder / node)
        log.write(deed, 1_000_000, *ids)
        log.close()
    truth = Truth({node: [folder / node] for node in SERVICE_NODES}, RECEIVERS)
    texts: dict[str, list[bytes]] = {"mainline": [], "others": [str(uuid.UUID(bytes=one)).encode() for one in kept]}
    return build_account(truth, [read_receiver(name, truth, texts[name], 3) for name in RECEIVERS])


def report(**changes: dict[str, Any]) -> Measurements:
    """Return what an honest monitor says of the healthy run, with changes at some nodes or of the window."""
    counts = {"gate": (9, 1), "router": (8, 0), "norm": (8, 0), "mainline": (4, 0), "others": (3, 1)}
    nodes = [
        {"node": node, "departed": departed, "rejected": rejected, "duplicates_out": 0, "loss": 0}
        | changes.get(node, {})
        for node, (departed, rejected) in counts.items()
    ]
    window = {"window_start": "2026-01-02T03:04:00Z", "deferred": 0, "lost_lower": 1, "nodes": nodes}
    told = {"streams": [{"stream": STREAM, "windows": [window | changes.get("window", {})]}], "accounts": {}}
    return Measurements(told, lambda _: set(), SERVICE_NODES)


NONE = Faults()


def compare(
    account: ServiceAccount, measured: Measurements, faults: Faults = NONE, **more: int
) -> list[ComparisonLine]:
    """Return the lines that do not hold."""
    given = {"reported_deferrals": 6, "under_way_count": 0} | more
    return [line for line in compare_account(account, measured, faults, **given) if not line.holds]


def test_an_honest_run_and_an_honest_report_agree(tmp_path: Path) -> None:
    """Nothing is lost but what was dropped, and what was not heard is a repeat that needs no stamp."""
    account = read(tmp_path, HEALTHY)
    assert compare(account, report()) == []
    assert (len(account.acknowledged), len(account.taken), len(account.refused)) == (9, 7, 1)
    assert (len(account.lost), len(account.phantoms), account.receivers[0].repeat_count) == (0, 0, 1)


@pytest.mark.parametrize(
    ("deeds", "what"),
    [
        ([("gate", NodeAction.HANDED_ON, [b"l" * 16])], {"acknowledged", "lost without a fault"}),
        ([("others", NodeAction.HANDED_ON, [b"p" * 16])], {"phantom", "taken"}),
        ([("others", NodeAction.HANDED_ON, IDS[7:8])], {"taken and refused", "taken"}),
        ([("others", NodeAction.REJECTED, IDS[7:8])], {"refused again"}),
    ],
)
def test_what_must_not_be_is_seen(tmp_path: Path, deeds: Deeds, what: set[str]) -> None:
    """A message that is lost, one from nowhere, one with two ends, and one that is sent again though it was refused."""
    assert {line.what for line in compare(read(tmp_path, HEALTHY + deeds), report())} == what


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"gate": {"departed": 8}}, "acknowledged"),
        ({"mainline": {"departed": 3}}, "taken"),
        ({"others": {"rejected": 0}}, "refused"),
        ({"mainline": {"duplicates_out": 2}}, "taken again"),
        ({"window": {"deferred": 1}}, "deferred in the end"),
        ({"window": {"lost_lower": 2}}, "lost without a fault"),
    ],
)
def test_a_report_that_differs_is_seen(tmp_path: Path, changes: dict[str, dict[str, Any]], what: str) -> None:
    """One figure of Hopwatch's each."""
    assert [line.what for line in compare(read(tmp_path, HEALTHY), report(**changes))] == [what]


def test_counts_of_deferrals_are_held_against_the_topics(tmp_path: Path) -> None:
    """A deferral that was not counted is seen."""
    assert [line.what for line in compare(read(tmp_path, HEALTHY), report(), reported_deferrals=5)] == [
        "deferred, times"
    ]


def test_what_is_kept_as_rejected_is_what_was_refused(tmp_path: Path) -> None:
    """Message by message, not by count alone."""
    (line,) = compare(read(tmp_path, HEALTHY, kept=IDS[:1]), report())
    assert (line.what, line.measured) == ("kept as rejected", "1, of other messages")


def test_of_killed_processes_less_may_be_told_and_a_refused_message_may_come_again(tmp_path: Path) -> None:
    """As much as was under way, and no more; what was told too much still differs."""
    killed = Faults(kills=(Kill("mainline", 0.0), Kill("others", 0.0), Kill("norm", 0.0)))
    account = read(tmp_path, [*HEALTHY, ("others", NodeAction.REJECTED, IDS[7:8])])
    less = report(mainline={"departed": 1}, others={"rejected": 0})
    assert compare(account, less, killed, reported_deferrals=2, under_way_count=1) == []
    assert {line.what for line in compare(account, report(mainline={"departed": 5}), killed)} == {
        "taken",
        "refused again",
    }


def test_counts_that_processes_printed_are_summed(tmp_path: Path) -> None:
    """All runs of a log, beside what else it says; a log that is not there says nothing."""
    log = tmp_path / "deliver.log"
    block = '{\n  "flights": {\n    "polled": 3,\n    "deferred": 2\n  }\n}\n'
    log.write_text(f"hopwatch deliver: ready\n{block}hopwatch deliver: {{ready}}\n{block}")
    assert read_reported([log, tmp_path / "none"], STREAM) == {"polled": 6, "deferred": 4}
