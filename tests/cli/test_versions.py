"""Tests of every command over a store that a newer or an older program wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import update

from hopwatch.cli.main import main
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.tables import SCHEMA_VERSION
from tests.support.conclusions import dump_tables
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

MORE: Final = '[gate.streams.orders]\nto = "spool:./events"\n[completeness.all]\nstream = "orders"\n'
GATED: Final = CONFIGURATION.replace('"a -> b"', '"gate -> b"') + MORE
ASKED: Final[dict[str, list[str]]] = {
    "run": ["run"],
    "run --once": ["run", "--once"],
    "run --begin-anew": ["run", "--begin-anew"],
    "report": ["report"],
    "report by hour": ["report", "--by", "hour"],
    "report --html": ["report", "--html", "report.html"],
    "compare": ["compare", "--stream", "orders", "--node", "b", "--candidate", "2"],
    "top": ["top"],
    "find": ["find", "00" * 16],
    "find many": ["find", "--ids-from", "ids.txt"],
    "outliers": ["outliers", "list"],
    "alerts list": ["alerts", "list"],
    "alerts budgets": ["alerts", "budgets"],
    "alerts history": ["alerts", "history"],
    "mark": ["mark", "deploy"],
    "markers list": ["markers", "list"],
    "pathway diff": ["pathway", "diff"],
    "pathway history": ["pathway", "history"],
    "pathway discover": ["pathway", "discover"],
    "pathway deadlines": ["pathway", "deadlines"],
    "pathway adopt": ["pathway", "adopt", "c", "--stream", "orders"],
    "markers remove": ["markers", "remove", "1"],
    "alerts ack": ["alerts", "ack", "loss/page/orders"],
    "store prune": ["store", "prune", "--keep", "1d"],
    "store prune --dry-run": ["store", "prune", "--keep", "1d", "--dry-run"],
    "schema list": ["schema", "list"],
    "schema check": ["schema", "check", "schema.avsc", "--subject", "orders"],
    "schema register": ["schema", "register", "schema.avsc", "--subject", "orders"],
    "schema diff": ["schema", "diff", "--subject", "orders"],
    "schema generate": ["schema", "generate", "python", "--subject", "orders"],
    "quarantine replay": ["quarantine", "replay", "--stream", "orders", "--all"],
    "gate": ["gate"],
    "ready": ["ready", "all", "--until", "2026-01-01T00:01:00Z"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return the current folder, with a store and what commands want to read."""
    monkeypatch.chdir(tmp_path)
    made = Workspace(tmp_path).configure()
    made.watch(*one_of_ten_lost())
    made.configure(GATED)
    (tmp_path / "ids.txt").write_text("00" * 16)
    (tmp_path / "events").mkdir()
    (tmp_path / "schema.avsc").write_text('{"type": "record", "name": "Order", "fields": []}')
    return made


def set_version(place: Workspace, version: str) -> dict[str, list[tuple[Any, ...]]]:
    """Let the store be of another version, and return all that is in it."""
    engine = dialect.create_engine(place.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(schema.version_table).values(version_num=version))
    engine.dispose()
    return kept(place)


def kept(place: Workspace) -> dict[str, list[tuple[Any, ...]]]:
    """Return all that is in the store, whatever its version."""
    engine = dialect.create_engine(place.store_url)
    found = dump_tables(engine)
    engine.dispose()
    return found


@pytest.mark.parametrize("arguments", ASKED.values(), ids=ASKED)
def test_a_store_of_a_newer_version_is_refused_by_every_command(
    arguments: list[str], place: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3, one line with both versions and what to do, and the store is as it was."""
    before = set_version(place, "9999")
    assert main(arguments) == 3
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == (
        f"hopwatch: the store {place.store_url} has schema version 9999, this program knows none above "
        f"{SCHEMA_VERSION}: use the newer program that wrote it, or name another store in [store] url"
    )
    assert kept(place) == before


@pytest.mark.parametrize("arguments", ASKED.values(), ids=ASKED)
def test_a_store_of_an_older_version_is_refused_by_every_command(
    arguments: list[str], place: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that helps."""
    before = set_version(place, "0001")
    assert main(arguments) == 3
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == (
        f"hopwatch: the store {place.store_url} has schema version 0001, this program needs {SCHEMA_VERSION}: "
        "stop the monitor and run hopwatch store migrate"
    )
    assert kept(place) == before


def test_doctor_says_that_a_store_is_of_a_newer_version(place: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """As a failure, with what to do."""
    set_version(place, "9999")
    assert main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert f"has schema version 9999, this program knows none above {SCHEMA_VERSION}" in out
    assert "use the newer program that wrote it" in out
