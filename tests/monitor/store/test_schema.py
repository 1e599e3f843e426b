"""Tests of the versions of the tables: made at the newest, taken there on demand, refused where they do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, Engine, MetaData, Table, delete, event, insert, inspect, select, text, update

from hopwatch.alerts.events import AlertKind, Word, from_json, to_json
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.kernel.books import Book
from hopwatch.monitor.kernel.packets import Packet
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import NodeCounts, format_iso
from hopwatch.monitor.store import dialect, pathway_versions, reader, rollups, schema, tables, writer
from hopwatch.monitor.store.tables import SCHEMA_VERSION
from tests.support.conclusions import build_conclusion, dump_tables
from tests.support.notifications import alert, notification
from tests.support.spool import START_US, STREAM_CONFIGS

ORDER: Final = (
    "inversions BIGINT DEFAULT 0",
    *(f"displacement_{part} BIGINT" for part in ("count", "min", "p50", "p95", "p99", "max")),
    "displacement_digest BYTEA",
)
"""Columns of nodes, in windows and in hours and days, that came with version 0015."""
ORDER_OF_WINDOWS: Final = tuple(("node_windows", column) for column in ORDER)
COUNTS: Final = ("windows", "counts TEXT")
"""The column of windows that came with version 0016."""
SEQUENCE: Final = ("windows", "sequence BIGINT")
"""That of windows, with version 0020."""
COUNTS_OF_HOURS: Final = ("rollups", "counts TEXT")
"""That of hours and days, with version 0018."""
LAGS_BY_COUNT: Final = ("windows", "count_digests TEXT")
"""The column of windows that came with version 0019."""
LAGS_BY_COUNT_OF_HOURS: Final = ("rollups", "count_digests TEXT")
"""That of hours and days, with the same version."""
OVERDUE: Final = (
    *((table, "overdue BIGINT") for table in ("windows", "node_windows")),
    ("node_windows", "overdue_ids TEXT"),
)
"""Columns of what is overdue, which came with versions 0025 and 0030."""
LATER_COLUMNS: Final = (
    ("windows", "partial BIGINT"),
    ("windows", '"deferred" BIGINT'),
    ("windows", "waits_passed_us BIGINT"),
    ("windows", "waits_next_us BIGINT"),
    COUNTS,
    LAGS_BY_COUNT,
    SEQUENCE,
    ("node_windows", "slowest TEXT"),
    ("node_windows", '"deferred" BIGINT'),
    *ORDER_OF_WINDOWS,
)
"""Columns of windows and their nodes that came after version 0006, by their tables."""
LATER_OF_HOURS: Final = (
    *((table, '"deferred" BIGINT') for table in ("rollups", "node_rollups")),
    *(("node_rollups", column) for column in ORDER),
    COUNTS_OF_HOURS,
    LAGS_BY_COUNT_OF_HOURS,
)
"""Columns of hours and days that came with version 0014, or later."""
READERS: dict[str, Callable[[Engine], object]] = {
    "run": schema.prepare_store,
    "report": reader.read_report,
    "find": lambda engine: reader.find_losses(engine, bytes(16)),
    "lost ids": lambda engine: reader.read_lost_ids(engine, "orders", "a"),
}


def differences(engine: Engine) -> list[Any]:
    """Return what Alembic would change to make the store's tables those of the program."""
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, tables.metadata))


def scripts() -> Config:
    """Return where Alembic finds the migrations."""
    config = Config()
    config.set_main_option("script_location", "hopwatch.monitor.store:migrations")
    config.set_main_option("path_separator", "os")
    return config


def upgrade(connection: Connection, version: str) -> None:
    """Make an empty database a store of an older version."""
    config = scripts()
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def set_version(engine: Engine, version: str) -> None:
    """Let the store be of another version."""
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(schema.version_table).values(version_num=version))


def refusal(what: Callable[[], object]) -> str:
    """Return the words of a store that is refused."""
    with pytest.raises(StoreError) as caught:
        what()
    return str(caught.value)


@contextmanager
def later_columns(connection: Connection, *more: tuple[str, str]) -> Iterator[None]:
    """Add the columns of later versions for the block, so that this program can write its rows into an older store."""
    with added_columns(connection, (*LATER_COLUMNS, *more)):
        yield


def has_hours(connection: Connection) -> bool:
    """Return whether a store is of a version that has hours."""
    return dialect.has_table(connection, tables.node_rollups)


@contextmanager
def added_columns(connection: Connection, columns: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Add columns to tables for the block, what versions 0024 and 0025 brought included."""
    added = [*columns, *OVERDUE, *([("node_rollups", "ends_digest BYTEA")] if has_hours(connection) else [])]
    for table, column in added:
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column}"))
    tables.pathway_versions.create(connection)
    pathway_versions.save_unknown(connection, STREAM_CONFIGS)
    yield
    tables.pathway_versions.drop(connection)
    for table, column in added:
        connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column.split()[0]}"))


def test_migrations_make_the_tables_of_the_program(url: str) -> None:
    """Nothing is left for Alembic to change; names, types, keys and indexes agree."""
    engine = dialect.create_engine(url)
    assert schema.migrate_store(engine) == ("", SCHEMA_VERSION)
    assert differences(engine) == []


def test_a_new_store_has_the_tables_that_migrations_make(engine: Engine) -> None:
    """A new store has the newest version, and the tables that migrations make."""
    assert differences(engine) == []
    assert schema.migrate_store(engine) == (SCHEMA_VERSION, SCHEMA_VERSION)


def write_old_rules(connection: Connection) -> None:
    """Write what a batch left of the rules of its streams before these had versions."""
    rules = {"orders": [["a", "b"], [[0, 1]], ["both", "both"], 1]}
    writer.set_values(connection, {"query_id": "q", "batch_id": "0", "rules": json.dumps(rules)})


def test_the_path_of_an_older_store_is_its_first_version(url: str) -> None:
    """Nodes, arrows, stamps and shards; of its terms nothing is known, and those of the next run count."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0023")
        rules = {
            "orders": [["a", "b", "c"], [[0, 1, 2]], ["both", "in", "both"], 2],
            "pings": [["p"], [], ["both"], 1, [["n", None, 0, True]]],
        }
        writer.set_values(connection, {"rules": json.dumps(rules)})
    schema.migrate_store(engine)
    with schema.open_snapshot(engine) as connection:
        found = pathway_versions.read_versions(connection)
        assert writer.read_value(connection, "rules") is None
        slow = replace(STREAM_CONFIGS["orders"], pathway=Pathway.parse("a -> b | c", {"b": "in"}), shards=2)
        assert pathway_versions.plan_versions(connection, {"orders": slow}, 0) == {"orders": slow}
    assert found["orders"].pathway == slow.pathway
    assert found["orders"].shards == 2
    assert found["orders"].terms == pathway_versions.UNKNOWN_TERMS
    assert found["pings"].pathway == Pathway.parse("n -> p", {"n": "count"})


def test_hours_of_an_older_store_are_rolled_up_from_its_windows(url: str) -> None:
    """A store of version 0001 knows none; after the migration all of them are there to be read."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0001")
        write_old_rules(connection)
        for table in (tables.stale_hours, tables.rollups):
            assert not dialect.has_table(connection, table)
        tables.stale_hours.create(connection)
        with later_columns(connection):
            writer.write_conclusions(connection, [build_conclusion()], 0)
        tables.stale_hours.drop(connection)
    assert schema.migrate_store(engine) == ("0001", SCHEMA_VERSION)
    assert differences(engine) == []
    (stream,) = rollups.read_report(engine, "hour")["streams"]
    assert [(hour["start"], hour["windows"]) for hour in stream["hours"]] == [(format_iso(START_US), 1)]


def test_hours_of_an_older_store_get_fingerprints(url: str) -> None:
    """Each one of its own, so that no reader takes one for another's."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0004")
        named = [column.name for column in tables.rollups.c if not column.nullable and column.name != "fingerprint"]
        counts = dict.fromkeys(named, 0)
        del counts["partial"], counts["deferred"], counts["counts"], counts["count_digests"]
        rows = [counts | {"stream": "orders", "span": "hour", "start_us": at, "is_frozen": False} for at in range(9)]
        columns = [column for column in tables.rollups.c if column.name in rows[0]]
        old = Table("rollups", MetaData(), *(Column(column.name, column.type) for column in columns))
        connection.execute(insert(old), rows)
    assert schema.migrate_store(engine) == ("0004", SCHEMA_VERSION)
    with schema.open_snapshot(engine) as connection:
        found = connection.execute(select(tables.rollups.c.fingerprint)).scalars().all()
    assert len(set(found)) == 9


def test_what_was_judged_before_partial_was_counted_has_none(url: str) -> None:
    """A store of version 0006 keeps its windows and hours; of what they lost, none is known to have left a terminal."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0006")
        write_old_rules(connection)
        with later_columns(connection, ("rollups", "partial BIGINT"), *LATER_OF_HOURS):
            writer.write_conclusions(connection, [build_conclusion()], 0)
            rollups.roll_up_hour(connection, "orders", START_US - START_US % rollups.HOUR_US)
    assert schema.migrate_store(engine) == ("0006", SCHEMA_VERSION)
    assert differences(engine) == []
    for by, told in (("windows", reader.read_report(engine)), ("hours", rollups.read_report(engine, "hour"))):
        assert [one["partial"] for one in told["streams"][0][by]] == [0]
    (window,) = reader.read_report(engine)["streams"][0]["windows"]
    assert [node["slowest"] for node in window["nodes"]] == [None, None]


def test_hours_with_messages_that_wait_are_rolled_up_anew(url: str) -> None:
    """A store of version 0013 kept no deferred messages in its hours; an hour without any stays as it was."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0013")
        write_old_rules(connection)
        hour_us = START_US - START_US % rollups.HOUR_US
        with added_columns(connection, (*ORDER_OF_WINDOWS, *LATER_OF_HOURS, COUNTS, LAGS_BY_COUNT, SEQUENCE)):
            later = replace(build_conclusion().result, window_start_us=START_US + rollups.HOUR_US)
            writer.write_conclusions(connection, [build_conclusion(), build_conclusion(later)], 0)
            for start_us in (hour_us, hour_us + rollups.HOUR_US):
                rollups.roll_up_hour(connection, "orders", start_us)
        assert rollups.read_stale_hours(connection) == []
        windows = tables.windows
        connection.execute(update(windows).where(windows.c.window_start_us == START_US).values(deferred=3))
    assert schema.migrate_store(engine) == ("0013", SCHEMA_VERSION)
    assert differences(engine) == []
    with schema.open_snapshot(engine) as connection:
        assert rollups.read_stale_hours(connection) == [("orders", hour_us)]
    hours = rollups.read_report(engine, "hour")["streams"][0]["hours"]
    assert [hour["deferred"] for hour in hours] == [3, 0]


def test_hours_in_which_nodes_counted_are_rolled_up_anew(url: str) -> None:
    """A store of version 0017 kept no counts in its hours; one that is pruned has none, which its day leaves open."""
    engine = dialect.create_engine(url)
    hours_us = [START_US - START_US % rollups.HOUR_US + number * rollups.HOUR_US for number in range(3)]
    lost = NodeCounts("n", 3, 3, 0, 0, 1.0, "a", 5, None, 2, None, None, None)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0017")
        write_old_rules(connection)
        with added_columns(connection, [COUNTS_OF_HOURS, LAGS_BY_COUNT, LAGS_BY_COUNT_OF_HOURS, SEQUENCE]):
            for hour_us, counts in zip(hours_us, ((lost,), (), (lost,)), strict=True):
                one = replace(build_conclusion().result, window_start_us=hour_us, counts=counts)
                writer.write_conclusions(connection, [build_conclusion(one)], 0)
                rollups.roll_up_hour(connection, "orders", hour_us)
            rollups.freeze_hour(connection, "orders", hours_us[2])
            connection.execute(delete(tables.windows).where(tables.windows.c.window_start_us == hours_us[2]))
    assert schema.migrate_store(engine) == ("0017", SCHEMA_VERSION)
    assert differences(engine) == []
    with schema.open_snapshot(engine) as connection:
        assert rollups.read_stale_hours(connection) == [("orders", hours_us[0])]
    told = [hour["counts"] for hour in rollups.read_report(engine, "hour")["streams"][0]["hours"]]
    assert [[one["lost_before_lower"] for one in of_hour] for of_hour in told] == [[2], [], []]
    ((of_day,),) = [span["counts"] for span in rollups.read_report(engine, "day")["streams"][0]["days"]]
    assert (of_day["lost_before_lower"], of_day["lost_before_upper"], of_day["left_before"]) == (2, None, 5)


def test_what_was_set_aside_under_an_older_name_is_taken_along(url: str) -> None:
    """A store of version 0010 called it quarantine, in its tables and in what alerts have told."""
    engine = dialect.create_engine(url)
    wrong = replace(alert(), kind=AlertKind.SET_ASIDE, word=Word.SET_ASIDE)
    told = to_json(notification(kind=AlertKind.SET_ASIDE, alerts=(wrong,)))
    before = told.replace('"kind": "set_aside"', '"kind": "quarantine"').replace('"set aside"', '"quarantined"')
    assert before.count("quarantine") == 3
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0010")
        connection.execute(text("INSERT INTO quarantine VALUES ('s.seg', 6, 10, 7, 'bad_crc', 'why')"))
        connection.execute(text("INSERT INTO pruned_quarantine VALUES ('bad_crc', 4)"))
        row = {"number": 1, "key": "k", "event": "firing", "at_us": 0, "notification": before}
        connection.execute(insert(tables.alert_history), [row])
    assert schema.migrate_store(engine) == ("0010", SCHEMA_VERSION)
    assert differences(engine) == []
    with schema.open_snapshot(engine) as connection:
        assert reader.count_set_aside(connection) == {"bad_crc": 5}
        kept = connection.execute(select(tables.alert_history.c.notification)).scalar_one()
    assert from_json(kept) == from_json(told)


@pytest.mark.parametrize("read", list(READERS.values())[1:], ids=list(READERS)[1:])
def test_whoever_reads_while_a_store_is_migrated_is_refused_or_reads_all_of_it(
    read: Callable[[Engine], object], url: str
) -> None:
    """Until the migration is committed it is the older store, and then the newer one; nobody waits or meets half."""
    engine, reading = dialect.create_engine(url), dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0010")
    with engine.execution_options(writes=True).begin() as connection:
        schema._upgrade(connection)
        told = refusal(lambda: read(reading))
    assert "has schema version 0010, this program needs" in told
    read(reading)


def test_whoever_began_to_read_before_a_migration_reads_on(engine: Engine) -> None:
    """A reader that began before a migration reads on what was there, however the migration ends."""
    with schema.open_snapshot(engine) as connection:
        before = reader.read_accounts(connection)
        with suppress(StoreError), dialect.translate_errors(engine.url):
            other = dialect.create_engine(engine.url.render_as_string(hide_password=False)).execution_options(
                writes=True
            )
            with other.begin() as migrating:
                if engine.dialect.name == "postgresql":
                    migrating.execute(text("SET LOCAL lock_timeout = '100ms'"))
                migrating.execute(text("ALTER TABLE set_aside RENAME TO renamed"))
        assert reader.read_accounts(connection) == before


def test_the_newest_migration_is_the_version_of_the_program() -> None:
    """Versions are numbers of four digits that count up, in one line."""
    known = [script.revision for script in ScriptDirectory.from_config(scripts()).walk_revisions()]
    assert known == [f"{number:04}" for number in range(len(known), 0, -1)]
    assert known[0] == SCHEMA_VERSION


def test_preparing_again_changes_nothing(engine: Engine) -> None:
    """A store that is there is used as it is."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, writer.Changes(0, books=[Book("orders", "a", "probe", 0)]))
    before = dump_tables(engine)
    schema.prepare_store(engine)
    assert dump_tables(engine) == before


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_older_store_is_refused_with_the_command_that_helps(
    read: Callable[[Engine], object], engine: Engine
) -> None:
    """Both versions are told, and nothing is changed."""
    set_version(engine, "0000")
    assert refusal(lambda: read(engine)) == (
        f"the store {dialect.redact_url(engine.url)} has schema version 0000, this program needs {SCHEMA_VERSION}: "
        "stop the monitor and run hopwatch store migrate"
    )


@pytest.mark.parametrize("read", [*READERS.values(), schema.migrate_store], ids=[*READERS, "migrate"])
@pytest.mark.parametrize("version", ["9999", "[bold]"])
def test_a_store_that_a_newer_program_wrote_is_refused(
    version: str, read: Callable[[Engine], object], engine: Engine
) -> None:
    """Both versions are told, and nothing is changed."""
    set_version(engine, version)
    assert refusal(lambda: read(engine)) == (
        f"the store {dialect.redact_url(engine.url)} has schema version {version}, this program knows none above "
        f"{SCHEMA_VERSION}: use the newer program that wrote it, or name another store in [store] url"
    )


@pytest.mark.parametrize("read", [*READERS.values(), schema.migrate_store], ids=[*READERS, "migrate"])
def test_a_database_of_another_program_is_refused(read: Callable[[Engine], object], url: str) -> None:
    """None of our tables is put beside its own."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("CREATE TABLE customers (name TEXT)"))
    assert refusal(lambda: read(engine)) == (
        f"the database {dialect.redact_url(url)} holds other tables than a store's: name another store in [store] url"
    )
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == ["customers"]


def test_a_database_that_only_migrations_of_another_program_made_is_refused(url: str) -> None:
    """Alembic's table alone makes no store."""
    engine = dialect.create_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        schema.version_table.create(connection)
        connection.execute(schema.version_table.insert().values(version_num=SCHEMA_VERSION))
    assert "holds other tables than a store's" in refusal(lambda: schema.prepare_store(engine))


def test_tables_are_looked_for_once_a_connection(engine: Engine) -> None:
    """Afterwards the version alone is read: one that changes is refused all the same, and so are tables that go."""
    engine.dispose()
    said: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *call: said.append(call[2]))
    counts = []
    for _ in range(3):
        with schema.open_snapshot(engine):
            counts.append(len(said))
        said.clear()
    assert counts[0] > counts[1] == counts[2]
    set_version(engine, "9999")
    assert "has schema version 9999" in refusal(lambda: reader.read_report(engine))
    with engine.execution_options(writes=True).begin() as connection:
        schema.version_table.drop(connection)
    assert "run the monitor once, it makes the tables" in refusal(lambda: reader.read_report(engine))


def test_a_store_that_is_not_there_is_told(url: str) -> None:
    """With the command that makes one."""
    told = f"there is no store at {dialect.redact_url(url)} yet: start the monitor with hopwatch run, it makes one"
    assert not schema.has_store(url)
    assert refusal(lambda: schema.require_store(url)) == told
    assert refusal(lambda: reader.read_report(dialect.create_engine(url))) == told


def test_asking_for_a_store_makes_none(url: str) -> None:
    """Not even an empty file."""
    assert not schema.has_store(url)
    file = dialect.database_file(url)
    assert file is None or not file.exists()


def test_counts_of_an_older_store_have_no_lags(url: str) -> None:
    """Counts that version 0018 wrote are read with unknown lags, in windows, hours, days and books."""
    engine = dialect.create_engine(url)
    counted = NodeCounts("n", 3, 3, 0, 0, 1.0, "a", 5, None, 2, None, None, None)
    lags = ("lag_in_us", "lag_out_us")
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection, "0018")
        write_old_rules(connection)
        clock = [("books", f"clock_{bound}_us BIGINT") for bound in ("low", "high")]
        more = [LAGS_BY_COUNT, LAGS_BY_COUNT_OF_HOURS, ("books", "lags TEXT"), SEQUENCE, *clock]
        with added_columns(connection, more):
            one = replace(build_conclusion().result, counts=(counted,))
            writer.write_conclusions(connection, [build_conclusion(one)], 0)
            rollups.roll_up_hour(connection, "orders", START_US - START_US % rollups.HOUR_US)
            book = Book("orders", "n", "p", 0, counted={(START_US // 1_000, 0): Packet(3)})
            writer.write_changes(connection, writer.Changes(0, books=[book]))
        for table in (tables.windows, tables.rollups):
            told = connection.execute(select(table.c.counts).limit(1)).scalar_one()
            older = [{name: of_node[name] for name in of_node if name not in lags} for of_node in json.loads(told)]
            connection.execute(update(table).values(counts=json.dumps(older)))
    assert schema.migrate_store(engine) == ("0018", SCHEMA_VERSION)
    assert differences(engine) == []
    (window,) = reader.read_report(engine)["streams"][0]["windows"]
    spans = [rollups.read_report(engine, by)["streams"][0][f"{by}s"][0] for by in ("hour", "day")]
    assert [[one[name] for name in lags] for span in (window, *spans) for one in span["counts"]] == [[None, None]] * 3
    with schema.open_snapshot(engine) as connection:
        assert list(reader.read_books(connection)) == [book]
