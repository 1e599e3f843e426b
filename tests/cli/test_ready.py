"""Tests of ``hopwatch ready``: its exit codes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopwatch.cli import ready
from hopwatch.monitor.lookup.completeness import ask_completeness
from hopwatch.probes.contract.batch import BatchKind, Metrics, MetricsStamp
from hopwatch.probes.contract.fingerprints import mix_ids
from tests.support.spool import make_batch, observation_batch, window_ms
from tests.support.workspace import CONFIGURATION, CONTRACTS, Workspace, closing_batches, one_of_ten_lost

BEHIND = '[completeness.behind]\nstream = "orders"\nover = "1m"\nnodes = ["b"]\n'
END = "2026-01-01T00:01:00Z"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _watched(workspace: Workspace) -> None:
    """Let one of ten messages of the first window be lost."""
    workspace.configure(CONFIGURATION + CONTRACTS).watch(*one_of_ten_lost())


@pytest.mark.parametrize(
    ("contract", "until", "code", "words"),
    [
        ("loose", END, 0, "loose: orders from 2026-01-01T00:00:00Z to 2026-01-01T00:01:00Z is complete"),
        ("loose", "2026-01-01T08:00:00Z", 1, "no probe has reported of this or a later time"),
        ("strict", END, 4, "1 messages are surely lost, more than lost_below allows"),
        ("strict", "2025-12-31T00:00:00Z", 4, "the store has no such windows"),
    ],
)
@pytest.mark.parametrize("wait", [(), ("--wait", "--timeout", "1ms")])
def test_the_exit_code_is_the_answer(
    workspace: Workspace, capsys: Captured, contract: str, until: str, code: int, words: str, wait: tuple[str, ...]
) -> None:
    """And the words say why; waiting ends at once where nothing is to be waited for."""
    assert workspace.run("ready", contract, "--until", until, *wait) == code
    assert words in capsys.readouterr().out


def test_json_is_the_answer_of_the_api(workspace: Workspace, capsys: Captured) -> None:
    """With what blocks it, since when, and until when it can change."""
    assert workspace.run("ready", "strict", "--until", END, "--json") == 4
    told = json.loads(capsys.readouterr().out)
    (blocked,) = told["blocked"]
    assert (told["state"], told["until"], told["amendable_until"]) == ("failed", END, "2026-01-01T01:04:00Z")
    assert (blocked["obstacle"], blocked["since"], blocked["messages"]) == ("lost", "2026-01-01T00:04:00Z", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nix", "--until", END), "there is no [completeness.nix], the configuration has: strict, loose"),
        (("strict", "--until", "2999-01-01T00:00:00Z"), "until is in the future: 2999-01-01T00:00:00Z"),
        (("strict", "--until", "2026-01-01T00:00:01Z"), "until is a whole UTC minute, as windows end"),
        (("strict", "--until", "soon"), "--until is a time such as"),
        (("strict", "--until", END, "--timeout", "1m"), "--timeout is how long --wait waits: give both, or neither"),
        (("strict", "--until", END, "--wait", "--timeout", "x"), "--timeout: a duration is a whole number with"),
    ],
)
def test_wrong_use_ends_with_2(workspace: Workspace, capsys: Captured, arguments: tuple[str, ...], words: str) -> None:
    """In one line that says what was got."""
    assert workspace.run("ready", *arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


def test_a_store_that_is_not_there_ends_with_3(workspace: Workspace, capsys: Captured) -> None:
    """As in every command."""
    (workspace.folder / "store.db").unlink()
    assert workspace.run("ready", "strict", "--until", END) == 3
    assert "there is no store at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[completeness.x]\nstream = "order"\n', "there is no [streams.order]; did you mean 'orders'?"),
        ('[completeness.x]\nstream = "orders"\nnodes = ["c"]\n', "there is no node in the path of orders 'c'"),
        ('[completeness.x]\nstream = "orders"\nover = "90s"\n', "a contract is over whole minutes"),
        ('[completeness.X]\nstream = "orders"\n', "a contract is 1 to 64 of the characters a-z0-9_-"),
        ('[api.readers.x]\ntokens = ["secret"]\n', "a token stands here as its hash"),
        ("[api]\nreaders = {}\n", "it names no reader, and without it anyone may read"),
        (
            f'[api.readers.x]\ntokens = ["sha256:{"0" * 64}"]\n[api.readers.y]\ntokens = ["sha256:{"0" * 64}"]\n',
            "a token belongs to one reader, and is named once",
        ),
        (f'[api.readers.x]\ntokens = ["sha256:{"0" * 64}"]\nstreams = ["nix"]\n', "there is no stream 'nix'"),
    ],
)
def test_a_wrong_contract_or_reader_is_told_with_its_place(
    workspace: Workspace, capsys: Captured, more: str, words: str
) -> None:
    """Before anything is asked."""
    workspace.configure(CONFIGURATION + more)
    assert workspace.run("ready", "x", "--until", END) == 2
    assert words in capsys.readouterr().err


def test_what_is_before_a_node_goes_by_the_path_of_the_store(workspace: Workspace, capsys: Captured) -> None:
    """A node that left the configuration still lost what it lost, and one that is new there has no windows."""
    nodes = ("a", "x", "b")
    passed = [observation_batch(range(10 if node == "a" else 9), node) for node in nodes]
    (workspace.folder / "store.db").unlink()
    workspace.configure(CONFIGURATION.replace("a -> b", "a -> x -> b")).watch(*passed, *closing_batches(1, nodes))
    workspace.configure(CONFIGURATION + BEHIND)
    assert workspace.run("ready", "behind", "--until", END) == 4
    assert "1 messages are surely lost" in capsys.readouterr().out
    workspace.configure(CONFIGURATION.replace("a -> b", "a -> c") + BEHIND.replace('["b"]', '["c"]'))
    assert workspace.run("ready", "behind", "--until", END) == 2
    told = "completeness.behind.nodes: the path that the store of orders was made by has no node c; it has a, x, b"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("is_printed", "code"), [(False, 4), (True, 0)])
def test_what_a_first_node_only_counted_has_to_come(
    workspace: Workspace, capsys: Captured, code: int, *, is_printed: bool
) -> None:
    """Without equal fingerprints any number may be lost behind it, though nothing that has an id is."""
    mixed = mix_ids(np.frombuffer(observation_batch(range(10)).message_ids, np.uint64).reshape(-1, 2)).view(np.int64)
    seen = Metrics(MetricsStamp.IN, 10, int(np.bitwise_xor.reduce(mixed)), int(mixed.sum()))
    counted = make_batch(BatchKind.METRICS, "n", metrics=(seen if is_printed else Metrics(MetricsStamp.IN, 10),))
    (workspace.folder / "store.db").unlink()
    path = CONFIGURATION.replace('"a -> b"', '"n -> a -> b"\nstamps = {n = "count"}')
    passed = [observation_batch(range(10), node) for node in ("a", "b")]
    workspace.configure(path + BEHIND).watch(counted, *passed, *closing_batches(1, ("n", "a", "b")))
    assert workspace.run("ready", "behind", "--until", END) == code
    told = "is complete" if code == 0 else "how many may be lost is unknown"
    assert told in capsys.readouterr().out


def test_who_waits_reads_a_store_that_takes_the_place_of_another(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was put aside would stay as it is for ever."""
    other = Workspace(tmp_path / "other")
    other.folder.mkdir()
    batches = [
        observation_batch(range(10), node, seq=minute, window_start_ms=window_ms(minute))
        for node in ("a", "b")
        for minute in (0, 1)
    ]
    other.configure().watch(*batches, *closing_batches(seq=2))
    answers: list[str] = []

    def ask_and_replace(*asked: Any) -> Any:  # noqa: ANN401 - as the command asks
        found = ask_completeness(*asked)
        answers.append(found["state"])
        if len(answers) == 1:
            (other.folder / "store.db").rename(workspace.folder / "store.db")
        return found

    monkeypatch.setattr(ready, "ask_completeness", ask_and_replace)
    monkeypatch.setattr(ready, "POLL_S", 0.01)
    assert workspace.run("ready", "loose", "--until", "2026-01-01T00:02:00Z", "--wait", "--timeout", "20s") == 0
    assert answers == ["pending", "complete"]
