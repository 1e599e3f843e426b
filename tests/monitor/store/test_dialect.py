"""Tests of what both databases promise: one writer at a time, readers in a snapshot, no password in a message."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError, OperationalError

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store import dialect, reader, writer
from hopwatch.monitor.store.writer import Changes

WRITERS = 8
EACH = 12


def test_eight_writers_fail_never(engine: Engine) -> None:
    """A transaction that writes is immediate: reading first and writing then needs no second lock to wait for."""
    start = threading.Barrier(WRITERS)

    def count() -> None:
        start.wait()
        for _ in range(EACH):
            with engine.execution_options(writes=True).begin() as connection:
                before = int(writer.read_value(connection, "count") or 0)
                writer.set_values(connection, {"count": str(before + 1)})

    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(count) for _ in range(WRITERS)]:
            done.result()
    with engine.begin() as connection:
        assert writer.read_value(connection, "count") == str(WRITERS * EACH)


def test_a_reader_sees_the_store_as_it_was_while_a_writer_is_at_work(engine: Engine, url: str) -> None:
    """Reports neither wait nor show half of a micro-batch."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(0, streams={"orders": (0, 0)}))
        assert reader.read_report(dialect.create_engine(url))["streams"] == []
    assert [stream["stream"] for stream in reader.read_report(dialect.create_engine(url))["streams"]] == ["orders"]


def test_a_report_is_of_one_moment(engine: Engine) -> None:
    """A report reads one moment, without what is written between its queries."""
    with engine.begin() as reading:
        assert reader.read_stream_ranges(reading) == {}
        with engine.execution_options(writes=True).begin() as writing:
            writer.write_changes(writing, Changes(0, streams={"orders": (0, 0)}))
        assert reader.read_stream_ranges(reading) == {}
    with engine.begin() as reading:
        assert reader.read_stream_ranges(reading) == {"orders": (0, 0)}


# Names


URLS = {
    "sqlite:////var/store.db": "sqlite:////var/store.db",
    "postgresql+psycopg://watch:secret@host/db": "postgresql+psycopg://watch:***@host/db",
    "postgresql+psycopg://watch:s%40cr%2Fet@host:1/db": "postgresql+psycopg://watch:***@host:1/db",
    "postgresql+psycopg://watch@/db?host=/run&password=secret&sslpassword=x": (
        "postgresql+psycopg://watch@/db?host=%2Frun"
    ),
}


@pytest.mark.parametrize(("url", "name"), URLS.items())
def test_a_store_is_named_without_its_password(url: str, name: str) -> None:
    """The password is hidden in any place of the URL."""
    assert dialect.redact_url(url) == name


@pytest.mark.parametrize("url", ["sqlite:////var/store.db", "postgresql+psycopg://watch:secret@host/db"])
def test_a_failure_tells_no_password(url: str) -> None:
    """The error about a store hides the password in its URL."""
    with pytest.raises(StoreError) as caught, dialect.translate_errors(url):
        raise OperationalError("SELECT", {}, Exception("odd"))
    assert str(caught.value).startswith(f"the store {dialect.redact_url(url)} failed: odd; ")
    assert "secret" not in str(caught.value)


def test_a_fault_of_our_own_is_not_laid_on_the_store(engine: Engine, url: str) -> None:
    """A row that breaks a constraint is a bug, and is told as one."""
    options = engine.execution_options(writes=True)
    with pytest.raises(IntegrityError), dialect.translate_errors(url), options.begin() as connection:
        connection.execute(text("INSERT INTO meta (name) VALUES ('x')"))
