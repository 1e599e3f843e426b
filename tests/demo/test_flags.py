"""Tests of what the flags mean, and of what is said when they mean nothing."""

from __future__ import annotations

import pytest

from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.flags import FaultError, add_deploys, add_healing, parse_faults
from hopwatch.demo.stream import NODES


def test_flags_become_faults() -> None:
    """Every flag sets its own fault at its node; kills come in the order of time."""
    faults = parse_faults(
        5,
        {
            "--drop": ["router=0.02", "norm=1"],
            "--filter": ["router=0.1"],
            "--reject": ["connector=0.3"],
            "--duplicate": ["ingest=0.4"],
            "--probe-drop": ["norm=0.5"],
            "--delay": ["norm=1.5"],
            "--skew": ["router=-5"],
        },
        ["norm@40", "router@9.5"],
        run_s=60.0,
    )
    assert faults == Faults(
        5,
        {
            "router": NodeFaults(drop_ratio=0.02, filter_ratio=0.1, skew_s=-5.0),
            "norm": NodeFaults(drop_ratio=1.0, probe_drop_ratio=0.5, delay_s=1.5),
            "connector": NodeFaults(reject_ratio=0.3),
            "ingest": NodeFaults(duplicate_ratio=0.4),
        },
        (Kill("router", 9.5), Kill("norm", 40.0)),
    )


@pytest.mark.parametrize(
    ("flag", "values", "text"),
    [
        ("--drop", ["router"], "--drop router: expected NODE=RATIO, for example --drop router=0.02"),
        ("--delay", ["router"], "--delay router: expected NODE=SECONDS, for example --delay router=5"),
        (
            "--drop",
            ["rooter=0.1"],
            f"--drop rooter=0.1: no node is called 'rooter' (did you mean router?); the nodes are {', '.join(NODES)}",
        ),
        ("--drop", ["x=0.1"], "--drop x=0.1: no node is called 'x'; the nodes are ingest, router, norm, connector"),
        ("--reject", ["norm=2%"], "--reject norm=2%: RATIO has to be a number, got '2%'"),
        ("--filter", ["norm=nan"], "--filter norm=nan: RATIO has to be a number, got 'nan'"),
        ("--delay", ["norm="], "--delay norm=: SECONDS has to be a number, got ''"),
        ("--drop", ["norm=2"], "--drop norm=2: a ratio is more than 0 and at most 1, got 2"),
        ("--duplicate", ["norm=0"], "--duplicate norm=0: a ratio is more than 0 and at most 1, got 0"),
        ("--delay", ["norm=20"], "--delay norm=20: a delay is more than 0 and at most 15 s, got 20"),
        ("--delay", ["norm=-1"], "--delay norm=-1: a delay is more than 0 and at most 15 s, got -1"),
        (
            "--skew",
            ["norm=0.5"],
            "--skew norm=0.5: a skew is 1 … 60 s ahead, or as much behind with a minus, got 0.5",
        ),
        (
            "--skew",
            ["norm=-61"],
            "--skew norm=-61: a skew is 1 … 60 s ahead, or as much behind with a minus, got -61",
        ),
        ("--drop", ["norm=0.1", "norm=0.2"], "--drop norm=0.2: norm has a --drop already; give it once a node"),
        (
            "--delay",
            ["norm=8", "router=8"],
            "all delays are at most 15 s in all, to stay within transit; got 16 s",
        ),
    ],
)
def test_what_cannot_be_is_told(flag: str, values: list[str], text: str) -> None:
    """The text names the flag, what was given, and what is allowed."""
    with pytest.raises(FaultError) as raised:
        parse_faults(0, {flag: values}, [], run_s=None)
    assert str(raised.value) == text
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("value", "run_s", "text"),
    [
        ("norm=9", None, "--kill norm=9: expected NODE@SECONDS, for example --kill router@5"),
        ("norm@soon", None, "--kill norm@soon: SECONDS has to be a number, got 'soon'"),
        ("norm@0", None, "--kill norm@0: a node is killed after the start, got 0 s"),
        ("norm@60", 60.0, "--kill norm@60: a node is killed after the start and before the end at 60 s, got 60 s"),
    ],
)
def test_a_kill_that_cannot_be_is_told(value: str, run_s: float | None, text: str) -> None:
    """A kill names a node and a moment of the run."""
    with pytest.raises(FaultError) as raised:
        parse_faults(0, {}, [value], run_s=run_s)
    assert str(raised.value) == text


def test_faults_that_share_messages_are_at_most_all_of_them() -> None:
    """A message has one fate at a node: the ratios must not add up to more than 1."""
    with pytest.raises(FaultError) as raised:
        parse_faults(0, {"--drop": ["norm=0.6"], "--filter": ["norm=0.6"]}, [], run_s=None)
    assert (
        str(raised.value) == "drop, filter, reject and duplicate share the messages of norm: at most 1 in all, got 1.2"
    )


def test_what_is_done_to_messages_may_end() -> None:
    """With the first message that is made later; without the flag it never does."""
    faults = Faults(0, {"router": NodeFaults(drop_ratio=0.02)})
    assert add_healing(faults, None, 500.0, run_s=60.0) == faults
    assert add_healing(faults, 10.5, 500.0, run_s=None).select_node("router") == NodeFaults(
        drop_ratio=0.02, healed_from=5_250
    )
    with pytest.raises(FaultError) as raised:
        add_healing(faults, 60.0, 500.0, run_s=60.0)
    assert str(raised.value) == "--heal-after 60: faults end before the run does, at 60 s"


def test_a_version_is_deployed_from_a_message_on() -> None:
    """The first one that is made so long after the start; other faults of the node stay."""
    faults = Faults(0, {"norm": NodeFaults(drop_ratio=0.02)})
    found = add_deploys(faults, ["norm@40=1.1", "router@0.0001=2.0-rc_1"], 500.0, run_s=60.0)
    assert found.nodes == {
        "norm": NodeFaults(drop_ratio=0.02, deployed_from=20_000, version="1.1"),
        "router": NodeFaults(deployed_from=1, version="2.0-rc_1"),
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("norm@60=", "expected NODE@SECONDS=VERSION, for example --deploy norm@60=1.1, with a version of 1 to 32"),
        ("norm@9=1 1", "expected NODE@SECONDS=VERSION"),
        ("norm=1.1", "--deploy norm: expected NODE@SECONDS, for example --deploy router@5"),
        ("nrom@9=1.1", "no node is called 'nrom' (did you mean norm?)"),
        ("norm@x=1.1", "SECONDS has to be a number, got 'x'"),
        ("norm@60=1.1", "a version is deployed after the start and before the end at 60 s, got 60 s"),
        ("norm@0=1.1", "got 0 s"),
        ("router@9=1.2", "router has a --deploy already; give it once a node"),
    ],
)
def test_a_deploy_that_makes_no_sense_is_refused(value: str, text: str) -> None:
    """With what was got, and how it is written."""
    with pytest.raises(FaultError) as raised:
        add_deploys(Faults(), ["router@5=1.1", value], 500.0, run_s=60.0)
    assert text in str(raised.value)
