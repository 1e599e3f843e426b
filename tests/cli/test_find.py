"""Tests of ``hopwatch find``: one message's journey, by whatever its id is written as."""

from __future__ import annotations

import json
import uuid
from typing import Any

import numpy as np
import pytest

from hopwatch.probes.contract.batch import Batch, WireIdKind
from hopwatch.probes.contract.id_texts import join_texts
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NO_REASON
from tests.support.spool import at_us, observation_batch, pack_lags, window_ms, write_segment
from tests.support.traced_service import lose_one_of_two
from tests.support.workspace import Workspace, closing_batches, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
UUID = uuid.UUID("0189d1a2-0000-7000-8000-00000000abcd")


def stamped(message_id: uuid.UUID | bytes | int | str, node: str = "a", **fields: Any) -> Batch:  # noqa: ANN401
    """Return a batch with one message."""
    return observation_batch([0], node, message_ids=id_bytes(message_id), **fields)


def found(workspace: Workspace, capsys: Captured, *arguments: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what ``find --json`` writes to stdout."""
    assert workspace.run("find", "--json", *arguments) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        (UUID, str(UUID)),
        (UUID, str(UUID).upper()),
        (UUID, UUID.hex),
        (UUID, f"urn:uuid:{UUID}"),
        (42, "42"),
        (42, f"{42:032x}"),
        (2**128 - 1, str(2**128 - 1)),
        ("order 4711/a", "order 4711/a"),
        ("42", "42"),
        (str(UUID), str(UUID)),
        (bytes(15) + b"\xff", "000000000000000000000000000000ff"),
        ("ünï [bold]", "ünï [bold]"),
        ("'; DROP TABLE lost_ids; --", "'; DROP TABLE lost_ids; --"),
        ("x" * 10_000, "x" * 10_000),
        ("9" * 10_000, "9" * 10_000),
    ],
)
def test_a_message_is_found_by_its_id(
    message_id: uuid.UUID | bytes | int | str, text: str, workspace: Workspace, capsys: Captured
) -> None:
    """A UUID, its digits, a number or a text; whatever an id may mean is looked for."""
    workspace.watch(stamped(message_id), stamped("another", seq=1))
    told = found(workspace, capsys, "--", text)
    assert told["id"] == text
    assert [stamp["message_id"] for stamp in told["stamps"]] == [id_bytes(message_id).hex()]


def test_a_stamp_tells_all_that_was_observed(workspace: Workspace, capsys: Captured) -> None:
    """Key by key; a side that was not stamped has no lag."""
    offset = np.array([1_500_000], "<u4").tobytes()
    rejected: dict[str, Any] = {"outcome": b"\2", "reason": b"\0", "reasons": ("no price",), "lag_out_us": b""}
    workspace.watch(stamped(7, event_offset_us=offset), stamped(7, "b", event_offset_us=offset, **rejected))
    first, second = found(workspace, capsys, "7")["stamps"]
    assert first == {
        "event_time_us": at_us(1.5),
        "event_time": "2026-01-01T00:00:01.500000Z",
        "message_id": f"{7:032x}",
        "stream": "orders",
        "node": "a",
        "probe": "probe-of-a",
        "lag_in_us": 1_000,
        "lag_out_us": 2_000,
        "outcome": "passed",
        "reason": "",
    }
    assert (second["node"], second["outcome"], second["reason"]) == ("b", "rejected", "no price")
    assert (second["lag_in_us"], second["lag_out_us"]) == (1_000, None)


def test_ids_are_told_as_they_were_given(workspace: Workspace, capsys: Captured) -> None:
    """By each batch; what version 1 said of an id, or a text that was not sent, is its bytes."""
    texts, ends = join_texts(["größe\n".encode()])
    named = {"id_kind": WireIdKind.TEXT, "id_texts": texts, "id_text_ends": ends}
    batches = [
        stamped("größe\n", "a", **named),
        stamped("größe\n", "b", id_kind=WireIdKind.TEXT, lag_in_us=pack_lags(9_000)),
    ]
    workspace.watch(
        *batches, stamped(UUID, "a", seq=1, id_kind=WireIdKind.UUID), stamped(7, "a", seq=2, id_kind=WireIdKind.INT)
    )
    shown = [stamp["message_id"] for stamp in found(workspace, capsys, "--", "größe\n")["stamps"]]
    assert shown == ["größe\n", f"{id_bytes('größe' + chr(10)).hex()} (hash of a text)"]
    assert [stamp["node"] for stamp in found(workspace, capsys, "--", shown[1])["stamps"]] == ["a", "b"]
    assert [stamp["message_id"] for stamp in found(workspace, capsys, UUID.hex)["stamps"]] == [str(UUID)]
    assert [stamp["message_id"] for stamp in found(workspace, capsys, "7")["stamps"]] == ["7"]


def test_stamps_come_in_the_order_of_the_journey(workspace: Workspace, capsys: Captured) -> None:
    """By lag, whatever segment they lie in."""
    workspace.watch(stamped(7, "b", lag_in_us=pack_lags(9_000), lag_out_us=pack_lags(9_500)), stamped(7))
    assert [stamp["node"] for stamp in found(workspace, capsys, "7")["stamps"]] == ["a", "b"]


def test_where_a_message_was_lost_is_told(workspace: Workspace, capsys: Captured) -> None:
    """With the stamps that it left behind it."""
    workspace.watch(*one_of_ten_lost())
    told = found(workspace, capsys, "9")
    assert [stamp["node"] for stamp in told["stamps"]] == ["a"]
    place = {"stream": "orders", "window_start": "2026-01-01T00:00:00Z", "node": "b"}
    assert told["lost"] == [place | {"message_id": f"{9:032x}", "loss": 1, "loss_lower": 1, "stamp_count": 1}]


def test_a_loss_outlives_its_segments(workspace: Workspace, capsys: Captured) -> None:
    """The journey of the message is told as before when the spool has nothing any more."""
    workspace.watch(*one_of_ten_lost())
    before = found(workspace, capsys, "9")
    assert len(before["stamps"]) == 1
    (workspace.folder / "spool" / "0" / "0000000000.seg").unlink()
    assert found(workspace, capsys, "9") == before
    assert workspace.run("find", "9") == 0
    assert "lost at b of orders, window 2026-01-01T00:00:00Z" in capsys.readouterr().out


def test_of_very_many_stamps_some_are_kept_and_all_are_counted(workspace: Workspace, capsys: Captured) -> None:
    """Of a message that was sent 300 times, and lost inside b: what is kept still says where."""
    alone = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}
    workspace.watch(observation_batch([9] * 300), observation_batch([9], "b", **alone), *closing_batches(seq=1))
    (workspace.folder / "spool" / "0" / "0000000000.seg").unlink()
    told = found(workspace, capsys, "9")
    assert (told["lost"][0]["stamp_count"], len(told["stamps"])) == (301, 256)
    assert {stamp["node"] for stamp in told["stamps"]} == {"a", "b"}
    assert workspace.run("find", "9") == 0
    assert capsys.readouterr().out.endswith("256 of its 301 stamps are kept\n")


def test_a_message_that_may_not_be_lost_is_not_called_so(workspace: Workspace, capsys: Captured) -> None:
    """The probe of b fell silent: the message was not seen there, and nobody knows more."""
    workspace.watch(*one_of_ten_lost()[:2])
    assert workspace.run("find", "9") == 0
    (told,) = capsys.readouterr().out.splitlines()[-1:]
    where = "b of orders, window 2026-01-01T00:00:00Z"
    assert told == f"not seen at {where}; it is not known whether it was lost"


WHERE = "of orders, window 2026-01-01T00:00:00Z"
ARRIVED: dict[str, Any] = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}
INSIDE: tuple[Batch, ...] = (
    observation_batch([8, 9]),
    observation_batch([8], "b"),
    observation_batch([9], "b", seq=1, **ARRIVED),
)


def last_line(workspace: Workspace, capsys: Captured, *arguments: str) -> str:
    """Return the last line of what ``find`` tells people."""
    assert workspace.run("find", *arguments) == 0
    return capsys.readouterr().out.splitlines()[-1]


def test_a_message_that_was_lost_inside_a_node_is_not_said_to_be_not_seen_there(
    workspace: Workspace, capsys: Captured
) -> None:
    """Its arrival is a row of the table: it never left. Names in JSON are as ever."""
    workspace.watch(*INSIDE, *closing_batches(seq=1, nodes=("a",)), *closing_batches(seq=2, nodes=("b",)))
    assert last_line(workspace, capsys, "9") == f"lost inside b {WHERE}: it arrived and was not seen leaving"
    told = found(workspace, capsys, "9")
    assert [(one["node"], one["lag_out_us"]) for one in told["stamps"]] == [("a", 2_000), ("b", None)]
    assert set(told["lost"][0]) == {"stream", "window_start", "node", "message_id", "loss", "loss_lower", "stamp_count"}


def test_a_message_that_may_be_lost_inside_a_node_was_not_seen_leaving(workspace: Workspace, capsys: Captured) -> None:
    """The probe of b fell silent behind its arrival."""
    workspace.watch(*INSIDE, *closing_batches(seq=1, nodes=("a",)))
    assert last_line(workspace, capsys, "9") == f"not seen leaving b {WHERE}; it is not known whether it was lost"


def test_a_message_that_was_lost_at_a_branch_was_seen_leaving(workspace: Workspace, capsys: Captured) -> None:
    """A message lost at a branch left the first node, and was seen at none of those behind it."""
    workspace.configure(workspace.config.read_text().replace("a -> b", "a -> b | c"))
    told = closing_batches(seq=1, nodes=("a", "b")), closing_batches(seq=1, nodes=("c",))
    workspace.watch(
        observation_batch(range(10)),
        observation_batch(range(5), "b"),
        observation_batch(range(5, 9), "c"),
        *told[0],
        *told[1],
    )
    assert last_line(workspace, capsys, "9") == f"lost after a {WHERE}: it left and was not seen behind it"


def test_a_message_may_be_found_before_there_is_a_store(workspace: Workspace, capsys: Captured) -> None:
    """The spool is enough, and no store is made by asking."""
    write_segment(workspace.folder / "spool" / "0.seg", stamped(7))
    assert len(found(workspace, capsys, "7")["stamps"]) == 1
    assert not (workspace.folder / "store.db").exists()


def test_only_the_named_stream_is_searched(workspace: Workspace, capsys: Captured) -> None:
    """The same id may be a message of each."""
    workspace.configure(workspace.config.read_text() + '[streams.trades]\npath = "a -> b"\n')
    workspace.watch(stamped(7), stamped(7, stream="trades"), *closing_batches(seq=1))
    assert [stamp["stream"] for stamp in found(workspace, capsys, "7", "--stream", "trades")["stamps"]] == ["trades"]
    assert [lost["stream"] for lost in found(workspace, capsys, "7", "--stream", "orders")["lost"]] == ["orders"]


def test_a_stream_that_is_not_configured_is_told(workspace: Workspace, capsys: Captured) -> None:
    """With those that are: nothing found of a mistyped stream would be no answer."""
    assert workspace.run("find", "7", "--stream", "ordres") == 2
    assert capsys.readouterr().err == "hopwatch: --stream names 'ordres', the configuration has: orders\n"


def test_broken_records_hide_nothing(workspace: Workspace, capsys: Captured) -> None:
    """The good ones around them are searched, foreign files passed over."""
    workspace.watch(b"broken" + id_bytes(7), stamped(7))
    write_segment(workspace.folder / "spool" / "1.seg").write_bytes(id_bytes(7))
    assert len(found(workspace, capsys, "7")["stamps"]) == 1


@pytest.mark.parametrize("text", ["8", "no such id", " ", "[bold]x[/bold]", "x" * 10_000])
def test_a_message_that_nobody_knows_is_a_finding(text: str, workspace: Workspace, capsys: Captured) -> None:
    """Exit 1, with where it was looked for; JSON says the same with empty lists."""
    workspace.watch(stamped(7))
    assert workspace.run("find", text) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"nothing is kept of {text!r:.80}: not among the segments that are kept, not among the lost ids\n"
    )
    assert workspace.run("find", "--json", text) == 1
    assert json.loads(capsys.readouterr().out) == {"id": text, "stamps": [], "lost": [], "trace_url": None}


def test_a_journey_is_drawn_as_text(workspace: Workspace, capsys: Captured) -> None:
    """Piped: one line a stamp, no colour, nothing on stderr."""
    workspace.watch(stamped(7), stamped(7, "b", lag_out_us=b""), *closing_batches(seq=1))
    assert workspace.run("find", "7") == 0
    told = capsys.readouterr()
    head, _, *rows = [line.split() for line in told.out.splitlines() if line.strip()]
    assert head == ["event", "time", "stream", "node", "probe", "lag", "in", "lag", "out", "outcome", "reason"]
    assert rows == [
        ["2026-01-01T00:00:00Z", "orders", "a", "probe-of-a", "1.0", "ms", "2.0", "ms", "passed"],
        ["2026-01-01T00:00:00Z", "orders", "b", "probe-of-b", "1.0", "ms", "\u2013", "passed"],
        f"lost inside b {WHERE}: it arrived and was not seen leaving".split(),
    ]
    assert ("\x1b" in told.out, told.err) == (False, "")


NAMES = ["[bold]x[/bold]", "<img src=x onerror=alert(1)>", ":smile:", "'; DROP TABLE windows", "ünï", "[/]"]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_probe_calls_itself_is_text(name: str, workspace: Workspace, capsys: Captured) -> None:
    """Markup in its name and in its reasons means nothing."""
    filtered: dict[str, Any] = {"outcome": b"\1", "reason": b"\0", "reasons": (name,)}
    workspace.watch(stamped(7, probe=name, **filtered))
    assert workspace.run("find", "7") == 0
    assert capsys.readouterr().out.count(name) == 2


def test_what_a_probe_calls_itself_cannot_steer_the_terminal(workspace: Workspace, capsys: Captured) -> None:
    """Control characters and line ends are shown by their codes, and break no row."""
    workspace.watch(stamped(7, probe="\x1b[2J\x07a\nb\u202e", outcome=b"\1", reason=bytes([NO_REASON])))
    assert workspace.run("find", "7") == 0
    out = capsys.readouterr().out
    assert r"\x1b[2J\x07a\nb\u202e" in out
    assert "\x1b" not in out
    assert len([line for line in out.splitlines() if "orders" in line]) == 1


def test_a_spool_that_is_not_there_is_told(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3, with what to do."""
    assert workspace.run("find", "7") == 3
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        (
            f"hopwatch: the spool {workspace.folder}/spool is a folder that probes write to, got nothing: "
            "start a probe with this sink, or correct [transport] url\n"
        ),
    )


def test_an_old_message_is_found_in_its_window(workspace: Workspace, capsys: Captured) -> None:
    """Its event time is that of its window, whenever it arrived."""
    workspace.watch(stamped(7, window_start_ms=window_ms(-600)), arrival_us=at_us(400))
    (stamp,) = found(workspace, capsys, "7")["stamps"]
    assert stamp["event_time"] == "2025-12-31T14:00:00Z"


def test_the_trace_of_a_message_is_told(workspace: Workspace, capsys: Captured) -> None:
    """Services that are traced have one, if the configuration says where traces are; the id may have any form."""
    place, lost_id = lose_one_of_two(workspace.folder)
    url = f"https://jaeger.example/trace/{lost_id[:32]}"
    assert place.run("find", lost_id) == 0
    assert capsys.readouterr().out.endswith(f"trace: {url}\n")
    assert found(place, capsys, id_bytes(lost_id).hex())["trace_url"] == url
