"""Tests of ``hopwatch validate``: what it takes, and what it says of what cannot be."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from hopwatch.cli.main import main
from tests.support.gate_client import configured
from tests.support.schemas import FIRST

TO = "kafka://127.0.0.1:1/orders"
NO_URL = "a registry is http://HOST:PORT or https://HOST:PORT, and its password stands in HOPWATCH_REGISTRY_PASSWORD"
ASKED = ["--stream", "orders", "--group", "g"]


def asked(folder: Path, *more: str, to: str = TO, keys: str = "", source: str = "kafka://127.0.0.1:1/raw") -> list[str]:
    """Return the arguments, with a configuration in a folder."""
    config = folder / "hopwatch.toml"
    config.write_text(configured(to, keys))
    return ["validate", "kafka", "--config", str(config), *ASKED, "--from", source, *more]


@pytest.fixture
def registered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder whose store has a schema."""
    (tmp_path / "schema.avsc").write_bytes(orjson.dumps(FIRST))
    config = asked(tmp_path)[3]
    assert main(["schema", "register", "--config", config, "--subject", "orders", str(tmp_path / "schema.avsc")]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--stream x", "--stream: there is no [gate.streams.x], there are: orders"),
        (
            "--time a --time-record",
            "the event time stands in one place, got --time and --time-record: name one of them",
        ),
        ("--time-unit ms", "--time-unit is how an event time in a value is written: say where with --time"),
        ("--id a..b", "--id: a path is 1 to 16 keys with dots between, such as meta.id; got 'a..b'"),
        (
            f"--from {TO}",
            "--from: orders is what [gate.streams.orders] to names: what is written there would be read again",
        ),
        (
            "--registry http://ann:secret@r",
            f"--registry: {NO_URL}; got http://r",
        ),
        ("--from kafka://127.0.0.1:1", "--from: it names no topic, got 'kafka://127.0.0.1:1'"),
        (
            "--from spool:x",
            '--from: a Kafka URL is "kafka://HOST:PORT/TOPIC", such as "kafka://broker:9092/hopwatch.observations"',
        ),
    ],
)
def test_what_cannot_be_asked_for_exits_with_2(
    registered: Path, capsys: pytest.CaptureFixture[str], more: str, told: str
) -> None:
    """One line on stderr that names the flag, nothing on stdout, and no broker is asked."""
    assert main(asked(registered, *more.split())) == 2
    out, err = capsys.readouterr()
    assert (out, err.partition("; got 'spool:")[0].rstrip("\n")) == ("", f"hopwatch: {told}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("to", "keys", "told"),
    [
        (
            "spool:x",
            "",
            "[gate.streams.orders] to is spool:{folder}/x, and what is in Kafka goes to topics: name one, such",
        ),
        (
            TO,
            'rejected = "spool:y"',
            "[gate.streams.orders] rejected is spool:{folder}/y, and what is in Kafka goes to",
        ),
        (
            TO,
            'unknown_schema = "stamp"',
            "[gate.streams.orders] unknown_schema is stamp, and a value whose schema is not known cannot be read",
        ),
        (
            TO,
            'unknown_schema = "hold"',
            "[gate.streams.orders] unknown_schema is hold, and a value whose schema is not known cannot be read",
        ),
        (
            TO,
            'rejected = "kafka://b:2/y"',
            "[gate.streams.orders] to and rejected are at 127.0.0.1:1 and b:2: a transaction",
        ),
    ],
)
def test_outputs_that_cannot_be_exit_with_2(
    registered: Path, capsys: pytest.CaptureFixture[str], to: str, keys: str, told: str
) -> None:
    """Outputs must be topics of one cluster, and an id in a value needs its schema, or the command exits with 2."""
    assert main(asked(registered, "--id", "a", to=to, keys=keys)) == 2
    assert capsys.readouterr().err.startswith(f"hopwatch: {told.format(folder=registered)}")


def test_a_subject_without_a_schema_exits_with_2(registered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A subject without a schema is an error that says how to register one."""
    assert main(asked(registered, keys='subject = "others"')) == 2
    told = "the subject 'others' has no schema: register it with hopwatch schema register --subject others FILE"
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


def test_a_store_that_is_not_there_exits_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made: who registers schemas makes it."""
    assert main(asked(tmp_path)) == 3
    assert capsys.readouterr().err.startswith("hopwatch: ")


def test_brokers_that_do_not_answer_exit_with_3(registered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the start, brokers that do not answer are an error with exit code 3."""
    assert main(asked(registered)) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "the topic raw at 127.0.0.1:1 cannot be reached: " in line
