"""Tests of ``hopwatch compare``: its exit codes, what it says, which windows it reads, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hopwatch.monitor.results import LabelValueKind, Status
from tests.support.versions import build_row, write_minute, write_versions
from tests.support.workspace import Workspace

ASKED = ("compare", "--stream", "orders", "--node", "b")
Captured = pytest.CaptureFixture[str]
SAME = (9_000, 0, 450)
Figures = tuple[int, int, int]


@pytest.fixture(autouse=True)
def _configured(workspace: Workspace) -> None:
    """Let there be a store, without windows."""
    workspace.configure().watch()


def ask_json(workspace: Workspace, capsys: Captured, code: int, *arguments: str) -> dict[str, Any]:
    """Return what it says as JSON."""
    assert workspace.run(*ASKED, *arguments, "--json") == code
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize(
    ("new", "code", "words"),
    [
        ((1_000, 0, 50), 0, "not worse (tolerated: +0.10% lost, +5.00% slow)"),
        ((1_000, 30, 50), 1, "worse (tolerated: +0.10% lost, +5.00% slow)"),
        ((1_000, 0, 300), 1, "worse (tolerated: +0.10% lost, +5.00% slow)"),
        ((20, 0, 1), 4, "not known (tolerated: +0.10% lost, +5.00% slow)"),
    ],
)
def test_the_exit_code_is_the_verdict(
    workspace: Workspace, capsys: Captured, new: Figures, code: int, words: str
) -> None:
    """Loss and lag each have one, and the worse of the two is that of the candidate."""
    write_versions(workspace.store_url, 10, SAME, new)
    assert workspace.run(*ASKED) == code
    told = capsys.readouterr().out
    head = "b of orders: version 2 against all others, 10 windows from 2026-01-01 00:01 UTC to 2026-01-01 00:11 UTC"
    assert told.splitlines()[0] == head
    assert words in told


def test_a_table_has_both_shares_and_their_difference(workspace: Workspace, capsys: Captured) -> None:
    """With an interval; the minute before the candidate is in neither."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 30, 50))
    assert workspace.run(*ASKED) == 1
    told = capsys.readouterr().out
    lost, slow = (line.split() for line in told.splitlines()[4:6])
    assert lost == ["lost", "worse", "+3.00%", "+2.63%", "to", "+3.41%", "3.00%", "of", "10,000", "0%", "of", "90,000"]
    assert slow[:4] == ["slow", "not", "worse", "+0.15%"]
    assert slow[7:] == ["5.15%", "of", "9,700", "5.00%", "of", "90,000"]


def test_json_has_all_figures(workspace: Workspace, capsys: Captured) -> None:
    """Counts of the windows in which both have messages, and what was asked."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 30, 50))
    told = ask_json(workspace, capsys, 1, "--max-loss-increase", "0.02")
    loss, slow = told.pop("loss"), told.pop("slow")
    assert told == {
        "stream": "orders", "node": "b", "label": "version", "candidate": "2", "baseline": None,
        "from": "2026-01-01T00:01:00Z", "to": "2026-01-01T00:11:00Z", "windows": 10, "verdict": "WORSE",
    }  # fmt: skip
    difference = loss.pop("difference")
    assert loss == {"verdict": "WORSE", "max_increase": 0.02, "unknown": 0}
    assert [difference[name] for name in ("windows", "bad", "messages", "other_bad", "other_messages")] == [
        10, 300, 10_000, 0, 90_000,
    ]  # fmt: skip
    assert difference["share"] == pytest.approx(0.03)
    assert 0.025 < difference["lower"] < 0.03 < difference["upper"] < 0.035
    assert (slow["verdict"], slow["max_increase"], slow["difference"]["bad"]) == ("NOT_WORSE", 0.05, 500)


def test_it_is_compared_with_one_other_value_if_that_is_named(workspace: Workspace, capsys: Captured) -> None:
    """Others that lose more do not make it look good, and no messages without a value are compared."""
    url = workspace.store_url
    nameless = replace(build_row("", (5_000, 4_000, 0)), kind=LabelValueKind.NONE)
    for minute in range(8):
        rows = build_row("1", SAME), build_row("2", (1_000, 30, 50)), build_row("old", (1_000, 500, 20)), nameless
        write_minute(url, minute, *rows)
    told = ask_json(workspace, capsys, 1, "--candidate", "2", "--baseline", "1")
    assert (told["baseline"], told["loss"]["difference"]["other_messages"]) == ("1", 72_000)
    told = ask_json(workspace, capsys, 0, "--candidate", "2")
    assert told["loss"]["difference"]["other_bad"] == 4_000


def test_windows_that_do_not_tell_what_is_lost_make_no_candidate_good(workspace: Workspace, capsys: Captured) -> None:
    """Such windows are left out; at worst all of their messages are lost."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 0, 50))
    write_minute(workspace.store_url, 11, build_row("1", SAME), build_row("2", (1_000, 0, 50), is_known=False))
    told = ask_json(workspace, capsys, 4)
    assert (told["windows"], told["loss"]["difference"]["windows"], told["loss"]["unknown"]) == (11, 10, 1_000)
    assert (told["loss"]["verdict"], told["slow"]["verdict"]) == ("UNKNOWN", "NOT_WORSE")
    assert workspace.run(*ASKED) == 4
    words = "1,000 messages of the candidate are in windows that do not tell what is lost: at worst all of them are"
    assert words in capsys.readouterr().out
    assert ask_json(workspace, capsys, 0, "--to", "2026-01-01T00:11:00Z")["verdict"] == "NOT_WORSE"


def test_windows_that_are_not_final_do_not_count(workspace: Workspace, capsys: Captured) -> None:
    """Messages that are missing there may still come."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 0, 50))
    rows = build_row("1", SAME), build_row("2", (1_000, 900, 50))
    write_minute(workspace.store_url, 11, *rows, status=Status.PROVISIONAL)
    assert ask_json(workspace, capsys, 0)["windows"] == 10


def test_a_range_is_the_last_day_unless_one_is_given(workspace: Workspace, capsys: Captured) -> None:
    """The newest final window is its end; what the candidate lost a week before is not held against it now."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 500, 50))
    for minute in range(8):
        write_minute(workspace.store_url, 10_000 + minute, build_row("1", SAME), build_row("2", (1_000, 0, 50)))
    assert ask_json(workspace, capsys, 0)["windows"] == 8
    assert ask_json(workspace, capsys, 1, "--from", "2026-01-01")["windows"] == 18
    assert ask_json(workspace, capsys, 1, "--to", "2026-01-02")["windows"] == 10


def test_a_node_without_departures_is_compared_by_its_loss(workspace: Workspace, capsys: Captured) -> None:
    """Stamps of arrivals alone tell of nothing that is slow."""
    new, old = (replace(build_row(value, (1_000, 0, 0)), departures=0, slow=0) for value in "21")
    for minute in range(10):
        write_minute(workspace.store_url, minute, new, replace(old, expected_or_seen=9_000))
    told = ask_json(workspace, capsys, 0)
    assert (told["verdict"], told["slow"]) == ("NOT_WORSE", None)
    assert workspace.run(*ASKED) == 0
    assert "slow " not in capsys.readouterr().out.splitlines()[3]


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (3, "3 final windows have messages of the candidate; 5 are needed"),
        (8, "fewer than 5 windows have messages of both, and tell what is bad"),
    ],
)
def test_too_few_windows_tell_nothing(workspace: Workspace, capsys: Captured, minutes: int, words: str) -> None:
    """Neither a new candidate, nor one that has taken all messages over."""
    write_versions(workspace.store_url, min(minutes, 3), SAME, (1_000, 900, 50))
    for minute in range(4, minutes + 1):
        write_minute(workspace.store_url, minute, build_row("2", (1_000, 900, 50)))
    assert workspace.run(*ASKED) == 4
    assert words in capsys.readouterr().out


def test_a_candidate_that_was_never_seen_is_not_known(workspace: Workspace, capsys: Captured) -> None:
    """A pipeline may ask before the first message of a deploy has come."""
    write_versions(workspace.store_url, 10, SAME, (1_000, 0, 50))
    told = ask_json(workspace, capsys, 4, "--candidate", "3")
    assert (told["windows"], told["from"], told["loss"]["difference"], told["slow"]) == (0, None, None, None)
    assert workspace.run(*ASKED, "--candidate", "3") == 4
    assert capsys.readouterr().out.splitlines()[0] == "b of orders: version 3 against all others"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--node", "x"), "--node names 'x', the path of orders has: a, b"),
        (("--stream", "x"), "--stream names 'x', the configuration has: orders"),
        (("--label", "host"), "b of orders has said no value of the label host: there is nothing to compare"),
        (("--node", "a"), "a of orders has said no value of the label version: there is nothing to compare"),
        (("--baseline", "2"), "the version 2 is both the candidate and the baseline: name two values"),
        (("--max-loss-increase", "2"), "Invalid value for '--max-loss-increase'"),
        (("--from", "soon"), "--from is a time such as"),
    ],
)
def test_wrong_use_ends_with_2(workspace: Workspace, capsys: Captured, arguments: tuple[str, ...], words: str) -> None:
    """With what was got, and what there is."""
    write_versions(workspace.store_url, 5, SAME, SAME)
    assert workspace.run(*ASKED, *arguments) == 2
    assert words in capsys.readouterr().err


def test_one_value_alone_is_compared_with_nothing(workspace: Workspace, capsys: Captured) -> None:
    """Unless a candidate is named, which may be about to come."""
    write_minute(workspace.store_url, 0, build_row("1", SAME))
    assert workspace.run(*ASKED) == 2
    words = "b of orders has said one version alone, 1: there is nothing to compare; name a candidate"
    assert words in capsys.readouterr().err


def test_a_store_that_is_not_there_ends_with_3(workspace: Workspace, capsys: Captured) -> None:
    """As in every command."""
    (workspace.folder / "store.db").unlink()
    assert workspace.run(*ASKED) == 3
    assert "there is no store at" in capsys.readouterr().err
