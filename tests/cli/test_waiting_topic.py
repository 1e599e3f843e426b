"""Tests of the waiting topic of ``hopwatch validate``: what cannot be is told before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.cli import waiting_topic
from hopwatch.cli.main import main
from hopwatch.monitor import settings
from tests.support.gate_client import configured

TO = "kafka://127.0.0.1:1/orders"
UNIQUE = """[[gate.rules]]
kind = "uniqueness"
subject = "orders"
field = "a"
"""


def refused(folder: Path, capsys: pytest.CaptureFixture[str], keys: str, *command: str) -> str:
    """Return the one line that a command ends with, which exits with 2."""
    config = folder / "hopwatch.toml"
    config.write_text(configured(TO, keys))
    asked = command or ("kafka", "--stream", "orders", "--group", "g", "--from", "kafka://127.0.0.1:1/raw")
    assert main(["validate", *asked, "--config", str(config)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("hopwatch: ")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            UNIQUE,
            "[gate.streams.orders] unknown_schema is hold, and the rule 'uniqueness a' cannot tell what was unique",
        ),
        (
            'waiting = "kafka://b:2/w"',
            "[gate.streams.orders] waiting is kafka://b:2/w, and to is at 127.0.0.1:1: a transaction lies within one",
        ),
        (
            'waiting = "spool:w"',
            '[gate.streams.orders] waiting: a Kafka URL is "kafka://HOST:PORT/TOPIC", such as',
        ),
        *[
            (
                f'waiting = "kafka://127.0.0.1:1/{topic}"',
                f"[gate.streams.orders] waiting is kafka://127.0.0.1:1/{topic}, which is read or written otherwise",
            )
            for topic in ("raw", "orders", "orders.rejected")
        ],
    ],
)
def test_a_wait_that_cannot_be_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str, told: str
) -> None:
    """One line says why, and no broker is asked."""
    assert refused(tmp_path, capsys, f'unknown_schema = "hold"\n{keys}').startswith(told)


def test_a_topic_that_nobody_reads_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The waiting topic of a stream is made only if its records wait."""
    told = 'no records of orders wait: [gate.streams.orders] has no unknown_schema = "hold"'
    assert refused(tmp_path, capsys, "", "create-topics", "orders") == told


@pytest.mark.parametrize(
    ("hold_for", "told"),
    [
        ("1h", ""),
        (
            "1d",
            "records wait up to 24.0 h, and windows of orders are amended for 60.0 min: they would stay UNKNOWN: raise",
        ),
    ],
)
def test_a_wait_beyond_the_amendments_of_a_window_is_told(tmp_path: Path, hold_for: str, told: str) -> None:
    """By default all that waits is judged in the end."""
    config = tmp_path / "hopwatch.toml"
    config.write_text(configured(TO, f'unknown_schema = "hold"\nhold_for = "{hold_for}"'))
    chosen = settings.load(config, flags={}, environ={})
    found = waiting_topic.describe_long_hold(chosen, "orders")
    assert found == (told and f"{told} amend_for of [streams.orders]")
