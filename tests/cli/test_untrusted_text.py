"""Tests of every command with texts of strangers that try to steer a terminal: they are shown, and do nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import click
import orjson
import pytest
import typer
from sqlalchemy import ColumnElement, Text, case, func, update

from hopwatch.alerts import rule_config
from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.cli.commands import COMMANDS, build_application
from hopwatch.cli.gate_builder import build_gate, open_registry
from hopwatch.cli.main import main
from hopwatch.gate import ids
from hopwatch.gate.codec_cache import CodecCache
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.monitor import settings
from hopwatch.monitor.outliers.explanation import Explanation, SurpriseReason
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.store import dialect, outliers, schema, tables
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.id_texts import join_texts
from hopwatch.probes.contract.ids import hash_text
from hopwatch.probes.message_headers import generate_id
from tests.support.batch_traffic import traffic
from tests.support.micro_batches import MicroBatches
from tests.support.schemas import record
from tests.support.spool import START_US, observation_batch, write_segment
from tests.support.workspace import CONFIGURATION, Workspace

Captured = pytest.CaptureFixture[str]

STRANGE: Final = "x\x1b]0;y\x07\x9b31m\x7f\u202e\u2066\r\b\nz"
"""Escape sequences of both kinds, a deletion, turned letters, and a line that is begun anew."""
CORE: Final = "\x9b31m\x7f\u202e\u2066"
"""What of it JSON has as it is."""
MORE: Final = """
[[alerts.rules]]
kind = "loss"
[[alerts.rules]]
kind = "lag"
for = "9m"
threshold = "1ms"
[gate.streams.orders]
to = "spool:./events/orders"
node = "a"
[deliver.billing]
stream = "orders"
node = "b"
from = "kafka://127.0.0.1:1/orders"
url = "https://billing.example/events"
"""
FIELDS: Final = ({"name": "price", "type": "double"}, {"name": "item", "type": "string"})
CONFIG: Final = ("--config", "{config}")
ELSEWHERE: Final = ("--config", "{strange}")
ORDERS: Final = ("--stream", "orders")
SUBJECT: Final = ("--subject", "orders")
CALLS: Final[dict[str, tuple[str, ...]]] = {
    "alerts ack": (*CONFIG, "--by", "me", "{strange}"),
    "alerts budgets": (*CONFIG, "--stream", "{strange}"),
    "alerts history": CONFIG,
    "alerts list": CONFIG,
    "alerts silence": (*CONFIG, "--for", "2h", "--why", "x", "{strange}"),
    "alerts suggest": (*CONFIG, "--stream", "{strange}"),
    "alerts test": (*CONFIG, "--channel", "{strange}"),
    "alerts unack": (*CONFIG, "{strange}"),
    "alerts unsilence": ("1", *ELSEWHERE),
    "api": ELSEWHERE,
    "dashboard": (*CONFIG, "--base-path", "{strange}"),
    "deliver create-topics": (*CONFIG, "{strange}"),
    "deliver drain": (*CONFIG, "{strange}"),
    "deliver list": ELSEWHERE,
    "deliver pause": (*CONFIG, "{strange}"),
    "deliver resume": (*CONFIG, "{strange}"),
    "deliver retrier": (*CONFIG, "{strange}"),
    "deliver run": (*CONFIG, "{strange}"),
    "demo": ("--drop", "{strange}"),
    "doctor": ELSEWHERE,
    "compare": (*CONFIG, *ORDERS, "--node", "b", "--label", "{strange}"),
    "completeness curve": (*CONFIG, "--stream", "{strange}"),
    "evidence export": ("{strange}/x", *CONFIG, "--from", "2026-01-01", "--to", "2026-01-02", "--key", "{strange}"),
    "evidence verify": ("{strange}", "--public-key", "{strange}"),
    "find": (*CONFIG, "{strange}"),
    "gate": ELSEWHERE,
    "gate token": (),
    "import": ("{strange}", *ORDERS, "--node", "a", "--id", "x", "--time", "x", "--sink", "{strange}"),
    "init": ("--config", "{new}", "--stream", "a={strange}"),
    "instrument": ("--service", "{strange}", "--", "{strange}"),
    "lag": (*CONFIG, "--stream", "{strange}"),
    "mark": (*CONFIG, "{strange}"),
    "markers list": (*CONFIG, "--stream", "{strange}"),
    "markers remove": ("1", *ELSEWHERE),
    "outliers list": CONFIG,
    "outliers score": ("{strange}", "--out", "{out}"),
    "pathway adopt": ("{strange}", *ORDERS, *CONFIG),
    "pathway check": ("{wrong}",),
    "pathway deadlines": (*CONFIG, "--stream", "{strange}"),
    "pathway diff": ELSEWHERE,
    "pathway discover": (*CONFIG, "--stream", "{strange}"),
    "pathway history": (*CONFIG, "--stream", "{strange}"),
    "top": (*CONFIG, "--stream", "{strange}"),
    "quarantine list": (*CONFIG, *ORDERS),
    "quarantine replay": (*CONFIG, *ORDERS, "--all"),
    "quarantine show": (*CONFIG, *ORDERS, "{event}"),
    "rate": (*CONFIG, *ORDERS, "--until", "{strange}", "--events", "x", "--receiver", "127.0.0.1:1"),
    "ready": (*CONFIG, "{strange}", "--until", "2026-01-01T00:01:00Z"),
    "redrive": (*CONFIG, "--stream", "{strange}", "--node", "b", "--window", "2026-01-01T00:00:00Z", "--dry-run"),
    "report": CONFIG,
    "run": ELSEWHERE,
    "scale": ("--policy", "cpu", "--target", "1", "--max", "1", "--", "{strange}"),
    "schema check": (*CONFIG, *SUBJECT, "{schema}"),
    "schema diff": (*CONFIG, *SUBJECT),
    "schema export": (*CONFIG, "--out", "{strange}/x"),
    "schema generate": (*CONFIG, *SUBJECT, "python"),
    "schema import": (*CONFIG, "{strange}"),
    "schema level": (*CONFIG, "--subject", "{strange}", "{strange}"),
    "schema list": (*CONFIG, "--subject", "{strange}"),
    "schema register": (*CONFIG, "--subject", "{strange}", "{schema}"),
    "schema restore": (*CONFIG, "--subject", "{strange}", "1"),
    "store migrate": ELSEWHERE,
    "store prune": (*CONFIG, "--keep", "{strange}"),
    "tap files": ("{strange}", *ORDERS, "--node", "a", "--id", "x", "--time", "x", "--sink", "{strange}"),
    "tap http": ("--port", "1", "--sink", "{strange}"),
    "tap jsonl": ("{strange}", *ORDERS, "--node", "a", "--id", "x", "--time", "x", "--sink", "{strange}"),
    "tap kafka": ("--from", "{strange}", "--group", "g", *ORDERS, "--node", "a"),
    "tap otlp": ("--port", "1", "--sink", "{strange}"),
    "tap table": ("delta:{strange}", *ORDERS, "--node", "a", "--id", "x", "--time", "x", "--sink", "{strange}"),
    "topics check": ELSEWHERE,
    "topics create": ELSEWHERE,
    "validate create-topics": (*CONFIG, "{strange}"),
    "validate kafka": (*CONFIG, "--stream", "{strange}", "--from", "kafka://127.0.0.1:1/x", "--group", "g"),
}
"""Each command, called so that it shows what a stranger wrote: in its data where it can, elsewhere in its refusal."""
SHOWS_NOTHING: Final = {"gate token"}
"""What no stranger can write into."""
SHOWS_DATA: Final = {"alerts list", "alerts history", "find", "outliers list", "report", "schema diff"} | {
    f"quarantine {name}" for name in ("list", "replay", "show")
}


@cache
def commands() -> dict[str, click.Command]:
    """Return every command of the program by its name, those of groups by both."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        called: Any = typer.main.get_command(build_application([name])).commands[name]  # type: ignore[attr-defined]  # a group
        below = getattr(called, "commands", {})
        if not below or called.invoke_without_command:
            found[name] = called
        found |= {f"{name} {one}": command for one, command in below.items()}
    return found


def flags(command: str) -> set[str]:
    """Return the flags of a command."""
    return {flag for one in commands()[command].params for flag in one.opts}


def test_no_command_is_left_out() -> None:
    """Every command of the program is called here."""
    assert set(CALLS) == set(commands())


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what commands are called with, where a stranger has written all that he may write."""
    place = Workspace(tmp_path_factory.mktemp("strangers")).configure(CONFIGURATION + MORE)
    event = _rejected(place)
    _watched(place)
    _renamed(place.store_url)
    wrong, avro = place.folder / "wrong.toml", place.folder / "schema.avsc"
    wrong.write_text(f"[streams.orders]\npath = {json.dumps('a -> ' + STRANGE)}\n".replace("\x7f", "\\u007f"), "utf-8")
    avro.write_bytes(orjson.dumps(record(*FIELDS, {"name": STRANGE, "type": "string"})))
    return {
        "config": str(place.config),
        "strange": STRANGE,
        "new": str(place.folder / "new.toml"),
        "out": str(place.folder / "out"),
        "event": event,
        "wrong": str(wrong),
        "schema": str(avro),
    }


def _rejected(place: Workspace) -> str:
    """Let an event be rejected for a field that its sender made up, and return its id."""
    chosen = settings.load(place.config, flags={}, environ={})
    registry = open_registry(chosen)
    registry.register("orders", Schema.parse(orjson.dumps(record(*FIELDS))))
    note = {"name": "note", "type": "string", "default": STRANGE, "doc": STRANGE}
    registry.register("orders", Schema.parse(orjson.dumps(record(*FIELDS, note))))
    sent = SentEvent(
        ids.format_uuid(generate_id(time.time_ns() // 1_000)), None, orjson.dumps({"price": 1, STRANGE: STRANGE})
    )

    async def send() -> None:
        gate = build_gate(chosen)
        gate.check_outlets()
        async with gate.lifespan():
            codec = await CodecCache(registry, gate.clock).get_codec("orders")
            await gate.intakes["orders"].accept([sent], codec, producer=STRANGE, each=True)

    asyncio.run(send())
    return str(sent.event_id)


def _watched(place: Workspace) -> None:
    """Let a monitor see a loss and tell of it, and keep the stamp of a message with a name of a stranger's."""
    chosen = settings.load(place.config, flags={}, environ={})
    engine = dialect.create_engine(place.store_url)
    schema.prepare_store(engine)
    stream = MicroBatches(
        chosen.stream_configs(),
        engine,
        follower=AlertHook(rule_config.build_rules(chosen), lambda _: ("chat",)),
    )
    for paths in traffic(place.folder / "spool"):
        stream.run(paths)
    why = Explanation(Quantity.MESSAGES, 40, 90, 110, (SurpriseReason("level_up", "high", 2_000.0),), START_US, 8.0)
    with engine.execution_options(writes=True).begin() as connection:
        outliers.write_changes(
            connection, "orders", FindingChanges([], [OutlierFinding(START_US, "b", is_outlier=True, why=why)])
        )
    engine.dispose()
    named = STRANGE.encode()
    texts, ends = join_texts([named])
    stamped = observation_batch(
        [0], message_ids=hash_text(named), id_kind=WireIdKind.TEXT, id_texts=texts, id_text_ends=ends
    )
    why_not = {"outcome": b"\2", "reason": b"\0", "reasons": (STRANGE,)}
    refused = observation_batch([0], "b", message_ids=hash_text(named), lag_out_us=b"", **why_not)
    write_segment(place.folder / "spool" / "9" / "0000000000.seg", stamped, refused)


def _renamed(url: str) -> None:
    """Put a stranger's text wherever the store has the name of the stream or of a node, and for the reasons."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        for table in tables.metadata.sorted_tables:
            for column in table.c if not table.name.startswith(("schemas", "subject_")) else ():
                if isinstance(column.type, (tables.ExactText, Text)):
                    connection.execute(update(table).values({column: _strange(column)}))
        connection.execute(update(tables.windows).values(reasons=json.dumps([STRANGE])))
    engine.dispose()


def _strange(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return what a column says with other names, by themselves, in JSON, and in the sentence of an alert."""
    for name in ("orders", "b"):
        column = func.replace(column, json.dumps(name), json.dumps(STRANGE + name))
        column = case((column == name, STRANGE + name), else_=column)
    return func.replace(column, " of orders ", f" of {json.dumps(STRANGE)[1:-1]} ")


def called(command: str, given: dict[str, str], *more: str) -> int:
    """Call a command as the list says, and return its exit code."""
    return main([*command.split(), *(one.format(**given) for one in CALLS[command]), *more])


def controls(text: str) -> set[str]:
    """Return the characters of a text that a terminal may take for more than a letter or the end of a line."""
    return {char for char in text if not char.isprintable() and char != "\n"}


def strings(told: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield all strings of a JSON value."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, dict):
        yield from (one for pair in told.items() for part in pair for one in strings(part))
    elif isinstance(told, list):
        yield from (one for part in told for one in strings(part))


@pytest.mark.parametrize("command", CALLS)
def test_nothing_that_a_stranger_wrote_reaches_a_terminal_raw(
    command: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Untrusted text is printed without control characters, but for line ends."""
    monkeypatch.setenv("COLUMNS", "1000")
    assert called(command, given) in {0, 1, 2, 3}
    out, err = capsys.readouterr()
    assert controls(out + err) == set()
    shown = "".join((out if command in SHOWS_DATA - {"quarantine replay"} else out + err).split())
    assert (r"\x9b31m\x7f\u202e\u2066" in shown) == (command not in SHOWS_NOTHING)


@pytest.mark.parametrize("command", [name for name in CALLS if "--json" in flags(name)])
def test_json_is_exact_and_steers_no_terminal_either(command: str, given: dict[str, str], capsys: Captured) -> None:
    """JSON has untrusted text letter by letter, with C1, DEL and bidi controls as escapes."""
    called(command, given, "--json")
    out, err = capsys.readouterr()
    assert controls(out + err) == set()
    if command in SHOWS_DATA:
        assert any(CORE in one for one in strings(json.loads(out)))
