"""Fencing of the store: one run writes it, a replayed batch changes nothing, a wrong checkpoint is refused.

The lock on a store is only as good as its disk. So each run of the monitor has a fencing token: the run that started
last has written its token into the store, and every other run finds that in its next transaction and stops writing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, select

from hopwatch.monitor.errors import CheckpointError, StoreError
from hopwatch.monitor.store import dialect, pathway_versions, schema, tables, version_markers, writer
from hopwatch.monitor.store.writer import read_value, set_values
from hopwatch.monitor.stream_config import StreamConfig

ONCE: Final = "once"
_NO_BATCH: Final = -1
_RUN: Final = "run"
_STOPPED: Final = "stopped_us"
_CONFIG_PROBLEM: Final = "config_problem"


def check_once(connection: Connection) -> None:
    """Check that a --once run may use the store.

    Raises:
        StoreError: the store holds results of a stream, whose records may be gone from the spool.
    """
    if is_of_stream(connection):
        what = "the store holds the results of a stream, --once would replace them"
        raise StoreError(f"{what}: name another store in [store] url, or the span to judge again by --from and --to")


def begin_once(connection: Connection, rules: Mapping[str, StreamConfig]) -> None:
    """Empty the store for a --once run, which reads all records again.

    Raises:
        StoreError: the store holds results of a stream.
    """
    check_once(connection)
    writer.clear_results(connection)
    pathway_versions.save_versions(connection, _without_minutes(rules), 0)
    set_values(connection, {"query_id": ONCE, _RUN: ONCE})


def begin_span(connection: Connection, rules: Mapping[str, StreamConfig]) -> None:
    """Take the store for a --once run over a span; an empty store is from now on one of --once runs.

    A stream's store stays its own: it goes on where it was.
    """
    if is_of_stream(connection):
        set_values(connection, {_RUN: ONCE})
        return
    pathway_versions.save_versions(connection, _without_minutes(rules), 0)
    set_values(connection, {_RUN: ONCE, "query_id": ONCE})


def is_of_stream(connection: Connection) -> bool:
    """Return whether a stream fills the store."""
    return read_value(connection, "query_id") not in (None, ONCE)


def read_span_rules(connection: Connection, rules: Mapping[str, StreamConfig]) -> dict[str, StreamConfig]:
    """Return the streams as a --once run over a span judges them: in a stream's store by the versions of their minutes.

    Raises:
        StoreError: a --once run filled the store, and a stream had another path, stamps or shards.
    """
    stored = pathway_versions.read_versions(connection)
    if is_of_stream(connection):
        return {stream: stored.get(stream, config) for stream, config in rules.items()}
    for stream, config in rules.items():
        known = stored.get(stream, config)
        if (known.pathway, known.shards) != (config.pathway, config.shards):
            what = f"the stream {stream!r} had another path, stamps or shards when the store was filled"
            raise StoreError(f"{what}: fill it anew by --once without a span, or name another store in [store] url")
    return dict(rules)


def begin_anew(engine: Engine, checkpoint: Path) -> int:
    """Delete the results and the checkpoint; return how many windows were deleted.

    The stream then begins with the first record that the transport still has.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        windows = writer.clear_everything(connection)
    if checkpoint.is_dir():
        shutil.rmtree(checkpoint)
    return windows


def claim_store(  # noqa: PLR0913, PLR0917 - all that has to fit together, and who claims it
    engine: Engine,
    checkpoint: Path,
    rules: Mapping[str, StreamConfig],
    transport: str = "",
    run: str = "",
    now_us: int = 0,
) -> dict[str, StreamConfig]:
    """Claim the store for a run, once store, checkpoint and transport fit together; return the streams' versions.

    ``transport`` identifies the transport among others of its name; empty where nothing does. ``run`` is the fencing
    token of the run. What the configuration says otherwise than the store is a new version; of the earlier ones those
    are returned of which some window may still be judged.

    Raises:
        StoreError: they do not fit together; the message says which of them to put aside.
    """
    with schema.open_change(engine) as connection:
        _check_consistency(connection, checkpoint, transport)
        set_values(connection, {_RUN: run})
        writer.delete_value(connection, _STOPPED)
        writer.delete_value(connection, _CONFIG_PROBLEM)
        known = pathway_versions.read_versions(connection)
        planned = pathway_versions.plan_versions(connection, rules, now_us)
        version_markers.mark_versions(connection, known, planned)
        pathway_versions.save_versions(connection, planned, now_us)
        watermark_us = read_watermark_us(connection)
        left = {stream: config.drop_past(watermark_us) for stream, config in planned.items()}
        return {stream: config for stream, config in left.items() if config.earlier or not config.is_removed}


def record_stop(engine: Engine, run: str, at_us: int) -> None:
    """Record the time of an orderly stop, unless another run owns the store.

    Raises:
        StoreError: the store cannot be written.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        if (read_value(connection, _RUN) or "") == run:
            set_values(connection, {_STOPPED: str(at_us)})


def record_config_problem(engine: Engine, run: str, problem: str) -> None:
    """Record why the last change of the configuration is not in force; empty if it is. Another run's store is left.

    Raises:
        StoreError: the store cannot be written.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        if (read_value(connection, _RUN) or "") != run:
            return
        if problem:
            set_values(connection, {_CONFIG_PROBLEM: problem})
        else:
            writer.delete_value(connection, _CONFIG_PROBLEM)


def require_run(connection: Connection, run: str) -> None:
    """Check that the run still owns the store, inside the transaction that will write.

    Raises:
        StoreError: another run has started since.
    """
    if (read_value(connection, _RUN) or "") != run:
        what = f"another monitor has taken the store {dialect.redact_url(connection.engine.url)}, and this one ends"
        advice = "run one of them, and keep a SQLite store on a disk of its own machine, where locks hold"
        raise StoreError(f"{what}: {advice}")


def check_run(engine: Engine, run: str) -> None:
    """Check that the run still owns the store, before anything is done outside it.

    Raises:
        StoreError: another run has started since, or the store fails.
    """
    with dialect.translate_errors(engine.url), engine.begin() as connection:
        require_run(connection, run)


@contextmanager
def open_run_change(engine: Engine, run: str) -> Iterator[Connection]:
    """Yield the connection of a transaction that writes, while the run owns the store.

    Raises:
        StoreError: another run has started since.
    """
    with engine.execution_options(writes=True).begin() as connection:
        require_run(connection, run)
        yield connection


def _check_consistency(connection: Connection, checkpoint: Path, transport: str) -> None:
    wrote, last = read_value(connection, "query_id"), int(read_value(connection, "batch_id") or _NO_BATCH)
    was = read_value(connection, "transport")
    name = dialect.redact_url(connection.engine.url)
    if wrote == ONCE:
        what = f"the store {name} holds the results of a --once run"
        raise StoreError(f"{what}: name another store in [store] url, or delete it")
    planned, done = (_newest_complete_batch(checkpoint, log, lines) for log, lines in (("offsets", 3), ("commits", 2)))
    mismatch = ""
    if wrote is None:
        mismatch = f"the checkpoint {checkpoint} is at batch {done}, the store is empty" if done > _NO_BATCH else ""
    elif planned == _NO_BATCH:
        mismatch = f"the store was written up to batch {last}, the checkpoint {checkpoint} has none"
    elif read_query_id(checkpoint) != wrote:
        mismatch = (
            f"the store was written by query {wrote}, the checkpoint {checkpoint} is of {read_query_id(checkpoint)}"
        )
    elif not done <= last <= planned:
        mismatch = f"the store is at batch {last}, the checkpoint {checkpoint} has done {done} and planned {planned}"
    if not mismatch and was and transport and transport != was:
        what = f"the store was written from another topic: {was}; [transport] url names {transport}"
        raise CheckpointError(f"{what}: put it back, name another store and workdir, or pass --begin-anew")
    if mismatch:
        advice = f"bring back the other's own, put the store and {checkpoint} aside together, or pass --begin-anew"
        raise CheckpointError(f"{mismatch}: {advice}")


def register_batch(
    connection: Connection, query: str, batch_id: int, rules: Mapping[str, StreamConfig], transport: str = ""
) -> bool:
    """Register a batch as written; return False if it is a replay, which must change nothing."""
    if read_value(connection, "query_id") == query and int(read_value(connection, "batch_id") or _NO_BATCH) >= batch_id:
        return False
    # A stream that was removed from the configuration stays known: it may come back while its windows are kept.
    pathway_versions.save_unknown(connection, rules)
    now = {"query_id": query, "batch_id": str(batch_id)}
    set_values(connection, now | ({"transport": transport} if transport else {}))
    return True


class StoreNotes(NamedTuple):
    """Notes of the run that fills a store: who it is, the watermark of its last batch, and when it stopped in order.

    ``config_problem`` says why the last change of the configuration is not in force; empty if it is.
    """

    query_id: str | None
    watermark_us: int
    stopped_us: int | None
    config_problem: str


def read_notes(connection: Connection) -> StoreNotes:
    """Query all of these at once."""
    column = tables.meta.c
    names = "query_id", "watermark_us", _STOPPED, _CONFIG_PROBLEM
    wanted = select(column.name, column.value).where(column.name.in_(names))
    found = {row.name: row.value for row in connection.execute(wanted)}
    stopped_us = int(found[_STOPPED]) if _STOPPED in found else None
    watermark_us, problem = int(found.get("watermark_us") or 0), found.get(_CONFIG_PROBLEM, "")
    return StoreNotes(found.get("query_id"), watermark_us, stopped_us, problem)


def read_watermark_us(connection: Connection) -> int:
    """Return the watermark of the last batch."""
    return int(read_value(connection, "watermark_us") or 0)


def read_query_id(checkpoint: Path) -> str:
    """Return the id that Spark gave the query of this checkpoint.

    Raises:
        CheckpointError: the checkpoint has no readable id.
    """
    try:
        return str(json.loads((checkpoint / "metadata").read_text("utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        what = f"the checkpoint {checkpoint} is damaged, its file metadata tells no id"
        raise CheckpointError(f"{what}: put it and the store aside to begin anew") from None


def _without_minutes(rules: Mapping[str, StreamConfig]) -> dict[str, StreamConfig]:
    """Return the streams of what is filled once: all windows are of one version, whatever minute that is meant for."""
    return {stream: replace(config, valid_from_us=0) for stream, config in rules.items()}


def _newest_complete_batch(checkpoint: Path, log: str, lines: int) -> int:
    """Return the number of the newest batch in a log of the checkpoint.

    Raises:
        CheckpointError: its file has fewer lines than ``lines``, or is not what Spark writes.
    """
    newest = max((int(one.name) for one in (checkpoint / log).glob("*") if one.name.isdigit()), default=_NO_BATCH)
    if newest == _NO_BATCH:
        return newest
    try:
        content = (checkpoint / log / str(newest)).read_text("utf-8").splitlines()
        json.loads(content[1])
    except (OSError, ValueError, IndexError):
        content = []
    if len(content) < lines:
        what = f"the checkpoint {checkpoint} is damaged, its file {log}/{newest} is not whole"
        raise CheckpointError(f"{what}: bring back a copy of it, or pass --begin-anew")
    return newest
