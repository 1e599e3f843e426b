"""Tests of ``hopwatch tap``: what it takes, what it says, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from hopwatch.cli.main import main
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.tables.tap import TableTap
from hopwatch.probes.taps.state import StateFile
from hopwatch.testing import EPOCH_US
from tests.support.probe_host import ROOT, rows, spooled

LAST_S = 60
RUN = (sys.executable, "-m", "hopwatch", "tap")
LINES = b"".join(b'{"id": %d, "meta": {"at": %d}}\n' % (number, EPOCH_US) for number in range(10))


def asked(tmp_path: Path, source: str = "-", *more: str) -> list[str]:
    """Return the arguments of a tap of JSON lines."""
    where = ["--stream", "orders", "--node", "router", "--sink", f"spool:{tmp_path}/spool"]
    return ["jsonl", source, *where, "--id", "id", "--time", "meta.at", *more]


def said(tmp_path: Path) -> list[Batch]:
    """Return what one tap said."""
    (batches,) = spooled(tmp_path / "spool").values()
    return batches


def test_a_pipe_is_stamped_to_its_end(tmp_path: Path) -> None:
    """The tally is on stdout as one JSON object, the words are on stderr, and the source has ended: bye."""
    command = [*RUN, *asked(tmp_path, "-", "--json", "--stamp", "out")]
    done = subprocess.run(command, cwd=ROOT, input=LINES + b"bad", capture_output=True, check=False, timeout=LAST_S)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"stamped": 10, "bad": {"not_json": 1}, "dropped": 1})
    assert [line for line in done.stderr.decode().splitlines() if line.startswith("hopwatch")] == [
        f"hopwatch tap: reading standard input, stamps go to spool:{tmp_path}/spool",
        "hopwatch tap: the event time is at meta.at of each line, written in us",
        "hopwatch tap: 10 stamped, 1 bad: not_json 1",
    ]
    batches = said(tmp_path)
    assert [row.message_id for row in rows(batches)] == [id_bytes(number) for number in range(10)]
    assert {row.in_us for row in rows(batches)} == {None}
    assert batches[-1].kind is BatchKind.BYE


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--state", "x"], "standard input has no position: --state and --from-start are for files"),
        (["--from-start"], "standard input has no position: --state and --from-start are for files"),
        (["--id", "a..b"], "a path is 1 to 16 keys with dots between, such as meta.id; got 'a..b'"),
        (["--node", "no de"], "a node is 1 to 128 of the characters A-Za-z0-9._-, got 'no de'"),
        (["--sink", "ftp://x"], "--sink: a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got 'ftp://x'"),
    ],
)
def test_what_cannot_be_asked_for_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    """One line on stderr, nothing on stdout, and nothing is started."""
    assert main(["tap", *asked(tmp_path, "-", *more)]) == 2
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


NO_URL = "a registry is http://HOST:PORT or https://HOST:PORT, and its password stands in HOPWATCH_REGISTRY_PASSWORD"
KAFKA = ["kafka", "--from", "kafka://127.0.0.1:1/t", "--group", "g", "--stream", "orders", "--node", "topic"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--id-json a --id-header b", "the id stands in one place, got --id-header and --id-json: name one of them"),
        ("--id-json a --id-avro b", "the id stands in one place, got --id-json and --id-avro: name one of them"),
        (
            "--time-record --time-header b --time-json c",
            "the event time stands in one place, got --time-header and --time-json and --time-record: name one of them",
        ),
        (
            "--time-record --time-unit ms",
            "--time-unit is how an event time is written, and --time-record reads none: name one of them",
        ),
        (
            "--framing debezium --id-json a --time-unit ms",
            (
                "--framing debezium knows where id and event time of a change are, got --id-json and --time-unit: "
                "leave it out"
            ),
        ),
        (
            "--framing debezium --take type:a",
            "--framing debezium takes all changes of a topic, got --take: leave it out",
        ),
        (
            "--framing debezium --avro-schema none",
            "the schema none cannot be read: No such file or directory: name a file that is there with --avro-schema",
        ),
        (
            "--avro-framing raw",
            "--avro-framing is for Avro values: name their schema with --avro-schema or --registry, or leave it out",
        ),
        (
            "--id-avro a --avro-schema f --registry http://r",
            "a schema is that of a file or of a registry: name --avro-schema or --registry",
        ),
        (
            "--id-avro a --registry http://r --avro-framing raw",
            "--avro-framing raw names no schema, so that none can be asked for: name --avro-schema",
        ),
        (
            "--take order",
            "--take is type:NAME, schema:FINGERPRINT (64 hexadecimal digits) or header:NAME=VALUE, got 'order'",
        ),
        ("--unknown-schema hold", "--unknown-schema goes with --registry: name both, or neither"),
        (
            "--id-avro a --registry http://r --hold 5",
            "--hold goes with --unknown-schema: name both, or neither",
        ),
        (
            "--id-avro a --registry http://r --unknown-schema reject --hold 5",
            "--hold goes with --unknown-schema hold: what is rejected does not wait",
        ),
        (
            "--id-avro a --registry ftp://r",
            f"--registry: {NO_URL}; got ftp://r",
        ),
        (
            "--registry http://r",
            "a value is JSON or Avro: --avro-schema or --registry go with --id-avro, --time-avro or --take",
        ),
        (
            "--id-avro a --avro-schema none",
            "the schema none cannot be read: No such file or directory: name a file that is there with --avro-schema",
        ),
    ],
)
def test_flags_that_contradict_each_other_exit_with_2(capsys: pytest.CaptureFixture[str], more: str, told: str) -> None:
    """Before any broker is asked: both are named."""
    assert main(["tap", *KAFKA, *more.split()]) == 2
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


def test_a_state_has_one_tap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second one ends with 3 and one line."""
    (tmp_path / "log").touch()
    state = StateFile(tmp_path / "state", tmp_path / "log")
    with state.lock():
        assert main(["tap", *asked(tmp_path, f"{tmp_path}/log", "--state", f"{state.path}")]) == 3
    told = f"another tap keeps its position in {state.path}: stop it, or name another file with --state"
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


@pytest.mark.parametrize("side", ["source", "sink"])
def test_brokers_that_do_not_answer_are_told_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str
) -> None:
    """As source and as sink: the client's sentence, and not its object."""
    (tmp_path / "log").touch()
    where = asked(tmp_path, f"{tmp_path}/log", "--sink", "kafka://127.0.0.1:1/t")
    assert main(["tap", *(KAFKA if side == "source" else where)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "Connection refused" in line or "none answers as a broker does" in line
    assert "KafkaError{" not in line


def test_a_folder_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is refused with advice of its own."""
    assert main(["tap", *asked(tmp_path, str(tmp_path))]) == 3
    assert capsys.readouterr().err == f"hopwatch: {tmp_path} cannot be read: Is a directory: name a file\n"


def test_what_cannot_be_read_exits_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what, where and what to do."""
    (tmp_path / "file").write_text("")
    assert main(["tap", *asked(tmp_path, f"{tmp_path}/file/log")]) == 3
    told = f"hopwatch: {tmp_path}/file/log cannot be read: Not a directory: let the tap's user read it\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_table_is_tapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The tap says what it reads and when messages are stamped, and at its end what it did; the spool has it all."""
    now = datetime.now(UTC)
    rows = pa.table({"id": ["a", "b", None], "at": pa.array([now] * 3, pa.timestamp("us", "UTC"))})
    write_deltalake(f"{tmp_path}/orders", rows)
    monkeypatch.setattr(TableTap, "run", lambda tap, _: tap.step())
    where = [f"{kind}:{tmp_path}/orders", "--stream", "orders", "--node", "lake", "--sink", f"spool:{tmp_path}/spool"]
    assert main(["tap", "table", *where, "--id", "id", "--time", "at", "--from-start", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"stamped": 2, "bad": {"no_id": 1}, "dropped": 1}
    assert said.err.splitlines() == [
        f"hopwatch tap: reading the snapshots of {kind}:{tmp_path}/orders, stamps go to spool:{tmp_path}/spool",
        "hopwatch tap: the event time is in the column at, the stamp is the snapshot's commit",
        "hopwatch tap: without --state a restart begins behind the present snapshot: what is before it is unknown",
        "hopwatch tap: 2 stamped, 1 bad: no_id 1",
    ]
    folders = sorted(folder.name.partition(".")[0] for folder in (tmp_path / "spool").iterdir())
    assert folders == ["http-records", "orders"]


def test_a_column_that_is_not_there_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With those that are, before anything is stamped."""
    write_deltalake(f"{tmp_path}/orders", pa.table({"order_id": [1], "created": [1]}))
    where = [f"delta:{tmp_path}/orders", "--stream", "orders", "--node", "lake", "--sink", f"spool:{tmp_path}/spool"]
    assert main(["tap", "table", *where, "--id", "id", "--time", "created"]) == 2
    told = f"delta:{tmp_path}/orders has no column 'id': name one of order_id, created with --id"
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")
    assert not (tmp_path / "spool").exists()
