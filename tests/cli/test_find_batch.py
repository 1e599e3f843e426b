"""Tests of ``hopwatch find --ids-from``: what became of each of many messages."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hopwatch.monitor.lookup import fates
from hopwatch.probes.contract.batch import Batch, WireIdKind
from hopwatch.probes.contract.id_texts import join_texts
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NO_REASON
from tests.support.spool import at_us, observation_batch, pack_lags
from tests.support.workspace import Workspace, closing_batches

Captured = pytest.CaptureFixture[str]
TEXTS = ("order-1", "order-2", "order-3", "größe")
UNTIL = pack_lags(at_us(10_000), at_us(10_000))
START = "2026-01-01T00:00:00Z"


def called(texts: tuple[str, ...], node: str, **fields: Any) -> Batch:  # noqa: ANN401 - of a batch
    """Return a batch of messages that are called by texts, all of which passed the node."""
    joined, ends = join_texts([text.encode() for text in texts])
    named = {"id_kind": WireIdKind.TEXT, "id_texts": joined, "id_text_ends": ends}
    return observation_batch(range(len(texts)), node, message_ids=b"".join(map(id_bytes, texts)), **named | fields)


def told(workspace: Workspace, capsys: Captured, lines: str, *more: str) -> tuple[int, dict[str, list[Any]]]:
    """Return the exit code, and the fates of each id, as JSON."""
    file = workspace.folder / "ids.txt"
    file.write_text(lines)
    code = workspace.run("find", "--ids-from", str(file), "--json", *more)
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, {one["id"]: one["messages"] for one in json.loads(captured.out)["ids"]}


@pytest.fixture
def watched(workspace: Workspace) -> Workspace:
    """Return a place where one of four is lost, one was filtered, and two were delivered."""
    reason = bytes([NO_REASON, NO_REASON, 0])
    at_b = called(
        TEXTS[:3], "b", outcome=b"\0\0\1", reason=reason, reasons=("test traffic",), lag_out_us=pack_lags(5, 5, 5)
    )
    return workspace.watch(called(TEXTS, "a"), at_b, *closing_batches(seq=1))


def test_each_id_has_what_became_of_it(watched: Workspace, capsys: Captured) -> None:
    """Delivered, filtered with its reason, lost, or nothing known; ids as people have them, each once, in order."""
    hashed = id_bytes("order-2").hex()
    code, found = told(watched, capsys, f"order-1\n order-3 \r\ngröße\nnobody\n{hashed}\norder-1\n")
    assert code == 1
    assert list(found) == ["order-1", "order-3", "größe", "nobody", hashed]
    where = {"stream": "orders", "window_start": START}
    assert found["order-1"] == [where | {"fate": "delivered", "node": "b", "reason": ""}]
    assert found["order-3"] == [where | {"fate": "filtered", "node": "b", "reason": "test traffic"}]
    assert found["größe"] == [where | {"fate": "lost", "node": "b", "reason": ""}]
    assert found["nobody"] == []
    assert [one["fate"] for one in found[hashed]] == ["delivered"]


def test_a_message_that_waits_is_deferred(workspace: Workspace, capsys: Captured) -> None:
    """The node keeps it beyond all amendments, with a reason; one that was deferred and then left was delivered."""
    kept = called(TEXTS[:2], "b", outcome=b"\3\3", reason=b"\0\0", reasons=("503",), lag_out_us=b"", until_us=UNTIL)
    sent = called(TEXTS[:1], "b", seq=1)
    workspace.watch(called(TEXTS[:2], "a"), kept, sent, *closing_batches(seq=2))
    _, found = told(workspace, capsys, "order-1\norder-2\n")
    fates_of = {name: [(one["fate"], one["reason"]) for one in ways] for name, ways in found.items()}
    assert fates_of == {"order-1": [("delivered", "")], "order-2": [("deferred", "503")]}


def test_people_read_a_line_an_id(watched: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """From standard input too; all of them are known, so that it ends well."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("order-3\ngröße\n".encode())))
    assert watched.run("find", "--ids-from", "-") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"order-3  filtered at b: test traffic (orders, window {START})",
        f"größe  lost at b (orders, window {START})",
    ]


def test_what_is_not_surely_lost_is_not_called_lost(workspace: Workspace, capsys: Captured) -> None:
    """Without the last words of b's probe it may have seen the message, and nobody knows."""
    workspace.watch(called(TEXTS, "a"), called(TEXTS[:3], "b"), *closing_batches(seq=1, nodes=("a",)))
    assert workspace.run("find", "--ids-from", str(_file(workspace, "größe\n"))) == 0
    assert "größe  not seen at b; it is not known whether it was lost" in capsys.readouterr().out


def test_what_was_lost_inside_a_node_arrived_there(workspace: Workspace, capsys: Captured) -> None:
    """By the counts of its node, so that it is told when its segments are gone too; of a mixed loss by its stamps."""
    arrived: dict[str, Any] = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}
    texts = (*TEXTS[:2], "größe")
    ends = closing_batches(seq=1, nodes=("a",)), closing_batches(seq=2, nodes=("b",))
    workspace.watch(
        called(texts, "a"), called(texts[:2], "b"), called(texts[2:], "b", seq=1, **arrived), *ends[0], *ends[1]
    )
    lines = str(_file(workspace, "größe\n"))
    expected = f"größe  lost inside b: it arrived and was not seen leaving (orders, window {START})"
    assert workspace.run("find", "--ids-from", lines) == 0
    assert capsys.readouterr().out.splitlines() == [expected]
    for path in (workspace.folder / "spool").rglob("*.seg"):
        path.unlink()
    assert workspace.run("find", "--ids-from", lines) == 0
    assert capsys.readouterr().out.splitlines() == [expected]


def test_of_losses_in_several_parts_each_is_told_by_its_stamps(workspace: Workspace, capsys: Captured) -> None:
    """One was lost on its way to b and one inside it; without their segments they are lost at b."""
    arrived: dict[str, Any] = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}
    ends = closing_batches(seq=1, nodes=("a",)), closing_batches(seq=2, nodes=("b",))
    at_b = called(TEXTS[:2], "b"), called(TEXTS[2:3], "b", seq=1, **arrived)
    workspace.watch(called(TEXTS, "a"), *at_b, *ends[0], *ends[1])
    lines = str(_file(workspace, "order-3\ngröße\n"))
    assert workspace.run("find", "--ids-from", lines) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"order-3  lost inside b: it arrived and was not seen leaving (orders, window {START})",
        f"größe  lost at b (orders, window {START})",
    ]
    for path in (workspace.folder / "spool").rglob("*.seg"):
        path.unlink()
    assert workspace.run("find", "--ids-from", lines) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{text}  lost at b (orders, window {START})" for text in ("order-3", "größe")
    ]


def test_a_loss_is_told_when_its_segments_are_gone(watched: Workspace, capsys: Captured) -> None:
    """The store has it still; another stream has nothing of it."""
    for path in (watched.folder / "spool").rglob("*.seg"):
        path.unlink()
    assert [one["fate"] for one in told(watched, capsys, "größe\n")[1]["größe"]] == ["lost"]


def test_thousands_of_ids_are_looked_for_at_once(workspace: Workspace, capsys: Captured) -> None:
    """Each as the one by itself; ids in one batch with thousands of others."""
    workspace.watch(observation_batch(range(3_000)), observation_batch(range(2_999), "b"), *closing_batches(seq=1))
    code, found = told(workspace, capsys, "".join(f"{number}\n" for number in range(1_000, 3_001)))
    words = {number: [one["fate"] for one in found[str(number)]] for number in (1_000, 2_998, 2_999, 3_000)}
    assert (code, len(found)) == (1, 2_001)
    assert words == {1_000: ["delivered"], 2_998: ["delivered"], 2_999: ["lost"], 3_000: []}


def test_memory_has_a_bound(watched: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages beyond the bound are left out, and the output says so."""
    monkeypatch.setattr(fates, "MAX_MESSAGES", 1)
    watched.run("find", "--ids-from", str(_file(watched, "order-1\norder-2\n")))
    assert "ask for fewer ids at once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no id: there is one on each line"),
        (b"1\n2\n\n3\n", "bad.txt has no id on line 3: there is one on each line"),
        (b" \t\n1\n", "bad.txt has no id on line 1: there is one on each line"),
        (b"1\n\n", "bad.txt has no id on line 2: there is one on each line"),
        (b"\xff\xfe1", "is a text in UTF-8, got bytes at 0"),
        (b"\n".join(b"%d" % number for number in range(100_001)), "takes 100,000 ids, of 64 MiB in all, at once"),
        (None, "cannot be read: No such file or directory"),
    ],
    ids=["empty", "blank", "spaces", "blank at the end", "binary", "too many", "not there"],
)
def test_a_file_that_cannot_be_says_why(
    watched: Workspace, capsys: Captured, content: bytes | None, sentence: str
) -> None:
    """With the exit code of a flag that cannot be."""
    file = watched.folder / "bad.txt"
    if content is not None:
        file.write_bytes(content)
    assert watched.run("find", "--ids-from", str(file)) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_no_id_is_no_id(watched: Workspace, capsys: Captured) -> None:
    """An empty id is refused with exit code 2."""
    assert watched.run("find", "") == 2
    assert capsys.readouterr().err == "hopwatch: the id is empty: name one, as the message was given it\n"


@pytest.mark.parametrize("arguments", [(), ("7", "--ids-from", "ids.txt")], ids=["neither", "both"])
def test_one_id_or_many(watched: Workspace, capsys: Captured, arguments: tuple[str, ...]) -> None:
    """Neither and both cannot be."""
    assert watched.run("find", *arguments) == 2
    assert "name one of the two" in " ".join(capsys.readouterr().err.split())


def _file(workspace: Workspace, lines: str) -> Path:
    file = workspace.folder / "some.txt"
    file.write_text(lines)
    return file
