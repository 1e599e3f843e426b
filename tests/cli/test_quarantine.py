"""Tests of ``hopwatch quarantine``: what was rejected is listed, shown, and sent in again."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from hopwatch.cli.gate_builder import build_gate
from hopwatch.cli.main import main
from hopwatch.gate import ids
from hopwatch.gate.codec_cache import CodecCache
from hopwatch.gate.quarantine import QuarantineError, read_rejected
from hopwatch.gate.records import EnteredRecord
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.monitor.clock import SystemClock as MonitorClock
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.contract.segment import read_frames
from hopwatch.probes.message_headers import generate_id
from tests.support.gate_client import CONFIG, GOOD, ORDER

Captured = pytest.CaptureFixture[str]
RULE: Final = """
[[gate.rules]]
subject = "orders"
kind = "range"
field = "price"
max = 10
action = "quarantine"
"""


class Place:
    """A folder with a configuration, a store with a schema, and events that were sent."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        self.folder, self.config = folder, folder / "hopwatch.toml"
        self.config.write_text(CONFIG + RULE)
        engine = dialect.create_engine(f"sqlite:///{folder}/hopwatch.db")
        schema.prepare_store(engine)
        self.registry = Registry(SubjectStore(engine, MonitorClock()))
        self.registry.register("orders", Schema.parse(orjson.dumps(ORDER)))

    def send(self, *events: Any) -> list[str]:  # noqa: ANN401 - JSON
        """Send events through a gate, and return their ids."""
        now_us = time.time_ns() // 1_000
        return self.send_all(
            [SentEvent(ids.format_uuid(generate_id(now_us)), None, orjson.dumps(one)) for one in events]
        )

    def send_all(self, sent: list[SentEvent]) -> list[str]:
        """Send events as they are through a gate, and return their ids."""
        return asyncio.run(self._send(sent))

    async def _send(self, sent: list[SentEvent]) -> list[str]:
        gate = build_gate(load(self.config, flags={}, environ={}))
        gate.check_outlets()
        intake = gate.intakes["orders"]
        async with gate.lifespan():
            codec = await CodecCache(self.registry, gate.clock).get_codec("orders")
            await intake.accept(sent, codec, producer="shop", each=True)
        return [str(one.event_id) for one in sent]

    def run(self, *arguments: str) -> int:
        """Run a command of quarantine."""
        return main(["quarantine", *arguments, "--stream", "orders", "--config", str(self.config)])

    def entered(self) -> list[str]:
        """Return the ids of the events that entered."""
        return [ids.format_uuid(one.event_id) for one in self._entered()]

    def times(self) -> list[int]:
        """Return the event times of the events that entered."""
        return [one.event_us for one in self._entered()]

    def _entered(self) -> list[EnteredRecord]:
        found = []
        for segment in sorted(self.folder.glob("events/orders/*/*.seg")):
            data = segment.read_bytes()
            found += [EnteredRecord.decode(data[one.start : one.end]) for one in read_frames(data)]
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place."""
    return Place(tmp_path)


def listed(place: Place, capsys: Captured, *arguments: str) -> list[dict[str, Any]]:
    """Return what is listed."""
    capsys.readouterr()
    assert place.run("list", "--json", *arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stream"] == "orders"
    assert told["rejected"] >= len(told["events"])
    return list(told["events"])


def test_what_was_rejected_is_listed_with_its_reasons(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The oldest first, those of one moment by their ids, what is held too; what entered is not."""
    monkeypatch.setenv("COLUMNS", "300")
    good, held, bad = place.send(GOOD, {"price": 11, "item": "x"}, {"price": "x"})
    assert place.entered() == [good]
    found = listed(place, capsys)
    assert [(one["id"], one["producer"], one["is_held"], one["bytes"]) for one in found] == sorted(
        [(held, "shop", True, 23), (bad, "shop", False, 13)]
    )
    (told,) = (one for one in found if one["is_held"])
    assert told["reasons"] == [{"place": "/price", "detail": "range price: it is at most 10"}]
    assert [one["id"] for one in listed(place, capsys, "--reason", "at most 10")] == [held]
    assert [one["id"] for one in listed(place, capsys, "--limit", "1")] == [max(held, bad)]
    assert place.run("list", "--limit", "1") == 0
    assert capsys.readouterr().err == "the newest 1 of 2: --limit shows more\n"
    assert place.run("list") == 0
    assert "/price: Input should be a valid number; /item: Field required" in capsys.readouterr().out


def test_where_nothing_is_rejected_that_is_told(place: Place, capsys: Captured) -> None:
    """In a line."""
    assert place.run("list") == 0
    assert capsys.readouterr().err == "no event of orders is rejected\n"
    assert place.run("list", "--reason", "x") == 0
    assert capsys.readouterr().err == "no event of orders is rejected for 'x'\n"


def test_one_is_shown_as_it_was_sent(place: Place, capsys: Captured) -> None:
    """With all that is known of it; or its bytes alone, for a file."""
    (held,) = place.send({"price": 11, "item": "x"})
    assert place.run("show", held) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"id: {held}"
    assert lines[-2:] == ["reason: /price: range price: it is at most 10", '{"price":11,"item":"x"}']
    assert place.run("show", held, "--json") == 0
    assert json.loads(capsys.readouterr().out)["data"] == '{"price":11,"item":"x"}'
    assert place.run("show", held, "--data") == 0
    assert capsys.readouterr().out == '{"price":11,"item":"x"}'


def test_what_was_fixed_enters_and_is_listed_no_more(place: Place, capsys: Captured) -> None:
    """With its own id; what may not enter still stays, with exit code 1."""
    held, bad = place.send({"price": 11, "item": "x"}, {"price": "x"})
    place.config.write_text(CONFIG)
    assert place.run("replay", "--all") == 1
    captured = capsys.readouterr()
    assert captured.out == "1 of 2 events of orders entered\n"
    assert captured.err == f"{bad} may not enter: /price: Input should be a valid number; /item: Field required\n"
    assert place.entered() == [held]
    assert [one["id"] for one in listed(place, capsys)] == [bad]
    assert place.run("replay", "--all", "--json") == 1
    reasons = ["/price: Input should be a valid number", "/item: Field required"]
    told = {"stream": "orders", "replayed": 0, "refused": [{"id": bad, "status": 422, "reasons": reasons}]}
    assert json.loads(capsys.readouterr().out) == told
    assert len(listed(place, capsys)) == 1


def test_one_may_be_sent_with_other_data(place: Place, capsys: Captured) -> None:
    """Under its id, from a file."""
    (bad,) = place.send({"price": "x"})
    file = place.folder / "fixed.json"
    file.write_bytes(orjson.dumps(GOOD))
    assert place.run("replay", bad.upper(), "--data", str(file)) == 0
    assert place.entered() == [bad]
    assert listed(place, capsys) == []


def test_those_with_a_reason_are_sent_together(place: Place, capsys: Captured) -> None:
    """And no others; one that was replayed, and came to be rejected again, is listed again."""
    held, bad = place.send({"price": 11, "item": "x"}, {"price": "x"})
    assert place.run("replay", "--reason", "at most 10") == 1
    assert capsys.readouterr().err == f"{held} may not enter: /price: range price: it is at most 10\n"
    assert {one["id"] for one in listed(place, capsys)} == {bad, held}


def test_what_has_no_id_or_time_of_its_own_does_not_enter(place: Place, capsys: Captured) -> None:
    """Events without an id or time of their own are refused, and so are others under an id that entered."""
    own = ids.format_uuid(generate_id(time.time_ns() // 1_000))
    sent = [
        SentEvent("order-7", time.time_ns() // 1_000, orjson.dumps(GOOD)),
        SentEvent(own, "yesterday", orjson.dumps(GOOD)),
    ]
    sent += [SentEvent(place.send(GOOD)[0], None, orjson.dumps(GOOD))]
    place.send_all(sent)
    place.send_all([SentEvent(own, None, orjson.dumps(GOOD)), SentEvent(own, None, b'{"price": 7, "item": "x"}')])
    assert place.run("replay", "--all", "--json") == 1
    reasons = [one["reasons"] for one in json.loads(capsys.readouterr().out)["refused"]]
    told = "/: it has no id of its own, or another event's, and would be another event: let its sender send it again"
    no_time = told.replace("id of its own, or another event's", "event time of its own")
    assert sorted(reasons) == sorted([[told], [told], [no_time]])
    assert len(place.entered()) == 3


def test_what_is_held_is_not_hidden_by_another_event_under_its_id(place: Place, capsys: Captured) -> None:
    """Its sender is done with it: both are listed, and the one that owns the id is shown and sent in."""
    own = ids.format_uuid(generate_id(time.time_ns() // 1_000))
    both = [b'{"price":11,"item":"x"}', b'{"price":7,"item":"x"}']
    place.send_all([SentEvent(own, None, one) for one in both])
    assert [one["is_held"] for one in listed(place, capsys)] in ([True, False], [False, True])
    assert place.run("show", own, "--data") == 0
    assert capsys.readouterr().out == both[0].decode()
    place.config.write_text(CONFIG)
    assert place.run("replay", own) == 0
    assert place.entered() == [own]


def test_an_old_event_keeps_its_time(place: Place, capsys: Captured) -> None:
    """An old event keeps its time when it is replayed, and enters once its age is allowed."""
    then_us = time.time_ns() // 1_000 - 72 * 3_600 * 1_000_000
    place.send_all([SentEvent(ids.format_uuid(generate_id(then_us)), None, orjson.dumps(GOOD))])
    assert place.run("replay", "--all") == 1
    assert "s old, 86400 s are allowed" in capsys.readouterr().err
    place.config.write_text(CONFIG.replace('"gate -> sink"', '"gate -> sink"\nmax_age = "100h"'))
    assert place.run("replay", "--all") == 0
    assert place.times() == [then_us // 1_000 * 1_000]


def test_a_replay_that_fails_leaves_what_was_sent(place: Place, capsys: Captured) -> None:
    """With the reasons and the sender that it had."""
    (held,) = place.send({"price": 11, "item": "x"})
    before = listed(place, capsys)
    file = place.folder / "typo.json"
    file.write_bytes(b'{"typo": 1}')
    assert place.run("replay", held, "--data", str(file)) == 1
    assert listed(place, capsys) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["replay"], "name the events: ids, --all, or --reason TEXT, one of these"),
        (["replay", "--all", "--reason", "x"], "name the events: ids, --all, or --reason TEXT, one of these"),
        (["replay", "--all", "--data", "x"], "--data is what one event is to be: name its id, and no other"),
        (["show", "x"], "there is no rejected event 'x', or it is in: 'hopwatch quarantine list' has all"),
    ],
)
def test_what_cannot_be_asked_is_told(place: Place, capsys: Captured, arguments: list[str], told: str) -> None:
    """With exit code 2."""
    assert place.run(*arguments) == 2
    assert capsys.readouterr().err == f"hopwatch: {told}\n"


def test_a_stream_that_has_no_entrance_is_told(place: Place, capsys: Captured) -> None:
    """With those that have one."""
    assert main(["quarantine", "list", "--stream", "x", "--config", str(place.config)]) == 2
    assert capsys.readouterr().err == "hopwatch: --stream names 'x', [gate.streams] has: orders\n"


def test_a_file_that_cannot_be_read_is_told(place: Place, capsys: Captured) -> None:
    """Before anything is sent."""
    (bad,) = place.send({"price": "x"})
    assert place.run("replay", bad, "--data", str(place.folder / "nix")) == 2
    assert capsys.readouterr().err.endswith("/nix cannot be read: No such file or directory\n")


def test_brokers_that_do_not_answer_are_told(place: Place, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """With exit code 3."""
    monkeypatch.setattr("hopwatch.gate.quarantine._READ_TIMEOUT_S", 0.2)
    place.config.write_text(CONFIG.replace("spool:./events/orders", "kafka://127.0.0.1:1/orders"))
    assert place.run("list") == 3
    told = capsys.readouterr().err
    assert told.startswith("hopwatch: the topic kafka://127.0.0.1:1/orders.rejected cannot be read: ")


def test_what_was_rejected_a_moment_ago_is_listed(place: Place, capsys: Captured) -> None:
    """The gate has synced it, and publishes its segment a second later: nobody waits for that."""
    first, second = place.send({"price": "x"}, {"price": "y"})
    (segment,) = place.folder.glob("events/orders.rejected/*/*.seg")
    segment.rename(segment.with_suffix(".open"))
    assert {one["id"] for one in listed(place, capsys)} == {first, second}
    (third,) = place.send({"price": "z"})
    assert {one["id"] for one in listed(place, capsys)} == {first, second, third}


def test_what_is_written_just_now_is_read_as_far_as_it_is_whole(
    place: Place, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a record is none yet; a segment that is published meanwhile is read under its other name."""
    first, second = sorted(place.send({"price": "x"}, {"price": "y"}))
    (segment,) = place.folder.glob("events/orders.rejected/*/*.seg")
    data = segment.read_bytes()
    opened = segment.with_suffix(".open")
    opened.write_bytes(data[:-5])
    segment.unlink()
    assert len(listed(place, capsys)) == 1
    opened.write_bytes(data)
    read = Path.read_bytes

    def published(path: Path) -> bytes:
        if path == opened and opened.exists():
            opened.rename(segment)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", published)
    assert [one["id"] for one in listed(place, capsys)] == [first, second]


def test_a_spool_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """With the reason."""
    (tmp_path / "gate-1").mkdir()
    (tmp_path / "gate-1" / "0000000001.seg").mkdir()
    with pytest.raises(QuarantineError, match=r"the spool /.* cannot be read: Is a directory"):
        read_rejected(f"spool:{tmp_path}", KafkaAccess())
