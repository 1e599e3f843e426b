"""Which run a store belongs to: the fence against replays, and the refusal of what does not fit together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine

from monitor.errors import CheckpointError, StoreError
from monitor.rules import StreamRules
from monitor.store import dialect, schema, writer
from monitor.store.writer import set_values, value

ONCE: Final = "once"
_NO_BATCH: Final = -1


def check_once(connection: Connection) -> None:
    """Check that the store is free for a run over all that is there.

    Raises:
        StoreError: the store holds what a stream has written, part of which the spool has no more.
    """
    if value(connection, "query_id") not in (None, ONCE):
        what = "the store holds the results of a running monitor, --once would replace them"
        raise StoreError(f"{what}: name another store in [store] url")


def begin_once(connection: Connection, rules: Mapping[str, StreamRules]) -> None:
    """Empty the store for a run over all that is there; such a run is complete in itself.

    Raises:
        StoreError: the store is a stream's.
    """
    check_once(connection)
    writer.clear(connection)
    set_values(connection, {"query_id": ONCE, "rules": _rules_text(rules)})


def check(engine: Engine, checkpoint: Path, rules: Mapping[str, StreamRules]) -> None:
    """Check that store, checkpoint and configuration belong together, before a stream starts.

    Raises:
        StoreError: they do not; the message says which of them to put aside.
    """
    with schema.reading(engine) as connection:
        wrote, last = value(connection, "query_id"), int(value(connection, "batch_id") or _NO_BATCH)
        kept = json.loads(value(connection, "rules") or "{}")
    if wrote == ONCE:
        what = f"the store {dialect.name_of(engine.url)} holds the results of a --once run"
        raise StoreError(f"{what}: name another store in [store] url, or delete it")
    _refuse_changed(kept, rules)
    planned, done = _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")
    told = ""
    if wrote is None:
        told = f"the checkpoint {checkpoint} is at batch {done}, the store is empty" if done > _NO_BATCH else ""
    elif planned == _NO_BATCH:
        told = f"the store was written up to batch {last}, the checkpoint {checkpoint} has none"
    elif query_id(checkpoint) != wrote:
        told = f"the store was written by query {wrote}, the checkpoint {checkpoint} is of {query_id(checkpoint)}"
    elif not done <= last <= planned:
        told = f"the store is at batch {last}, the checkpoint {checkpoint} has done {done} and planned {planned}"
    if told:
        advice = f"put the store and {checkpoint} aside together to begin anew, or bring back the other's own"
        raise CheckpointError(f"{told}: {advice}")


def enter(connection: Connection, query: str, batch_id: int, rules: Mapping[str, StreamRules]) -> bool:
    """Pass the fence: return whether this batch is new, and note it as written if so."""
    if value(connection, "query_id") == query and int(value(connection, "batch_id") or _NO_BATCH) >= batch_id:
        return False
    # A stream that the configuration has no more stays known: it may come back while its windows are kept.
    known = json.loads(value(connection, "rules") or "{}") | json.loads(_rules_text(rules))
    set_values(connection, {"query_id": query, "batch_id": str(batch_id), "rules": json.dumps(known, sort_keys=True)})
    return True


def watermark_us(connection: Connection) -> int:
    """Return the watermark of the last batch."""
    return int(value(connection, "watermark_us") or 0)


def query_id(checkpoint: Path) -> str:
    """Return the id that Spark gave the query of this checkpoint.

    Raises:
        CheckpointError: the checkpoint does not tell it.
    """
    try:
        return str(json.loads((checkpoint / "metadata").read_text("utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        what = f"the checkpoint {checkpoint} is damaged, its file metadata tells no id"
        raise CheckpointError(f"{what}: put it and the store aside to begin anew") from None


def _refuse_changed(kept: Mapping[str, object], rules: Mapping[str, StreamRules]) -> None:
    """Refuse other nodes, arrows or shards under the same name: what is kept of open windows counts by them."""
    now = json.loads(_rules_text(rules))
    for stream in kept:
        if stream in now and now[stream] != kept[stream]:
            what = f"the stream {stream!r} had another path, stamps or shards when the store was begun"
            raise StoreError(f"{what}: give it a new name, or begin with a new store and workdir")


def _rules_text(rules: Mapping[str, StreamRules]) -> str:
    told = {
        stream: [
            of_stream.pathway.nodes,
            [[group.source, *group.targets] for group in of_stream.pathway.groups],
            of_stream.pathway.stamps,
            of_stream.shards,
        ]
        for stream, of_stream in rules.items()
    }
    return json.dumps(told, sort_keys=True)


def _newest(log: Path) -> int:
    """Return the number of the newest batch in one of the checkpoint's logs."""
    return max((int(entry.name) for entry in log.glob("*") if entry.name.isdigit()), default=_NO_BATCH)
