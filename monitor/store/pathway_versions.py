"""Versions of the streams' configurations in the store: each is valid for windows from a minute on.

A window is judged, and shown, by the version of its minute, whatever is configured now. A new version becomes valid in
the first minute that has not begun and of which nothing has come: so no window is of two versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, select

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import CountingNode, Group, Pathway
from hopwatch.monitor.store import dialect, tables
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

UNKNOWN_TERMS: Final = WindowPolicy(0, 0, 0, 0)
"""Terms of a version that was stored before terms were: those of the next run count."""
MAX_DECODED: Final = 4_096
"""Versions that are kept decoded."""
_version = tables.pathway_versions.c


class RegisteredVersion(NamedTuple):
    """Version of a stream, and when it was registered; 0 where that is not known."""

    config: StreamConfig
    registered_us: int


def read_versions(connection: Connection) -> dict[str, StreamConfig]:
    """Query the newest version of each stream that this store was ever configured with, with the earlier ones."""
    return {stream: _link([one.config for one in of_stream]) for stream, of_stream in read_history(connection).items()}


def read_names(connection: Connection) -> set[str]:
    """Query the names of all streams that this store was ever configured with."""
    return set(connection.execute(select(_version.stream).distinct()).scalars())


def read_history(connection: Connection, stream: str | None = None) -> dict[str, list[RegisteredVersion]]:
    """Query all versions by stream, the oldest first; each without those before it."""
    wanted = select(_version.stream, _version.valid_from_us, _version.registered_us, _version.config)
    wanted = wanted if stream is None else wanted.where(_version.stream == stream)
    found: dict[str, list[RegisteredVersion]] = {}
    for row in connection.execute(wanted.order_by(_version.stream, _version.valid_from_us)):
        config = _decode_version(row.config, row.valid_from_us)
        found.setdefault(row.stream, []).append(RegisteredVersion(config, row.registered_us))
    return found


def read_stream(connection: Connection, stream: str) -> StreamConfig | None:
    """Query the newest version of a stream, with the earlier ones; None of an unknown stream."""
    history = read_history(connection, stream).get(stream)
    return _link([one.config for one in history]) if history else None


def plan_versions(connection: Connection, rules: Mapping[str, StreamConfig], now_us: int) -> dict[str, StreamConfig]:
    """Return the configured streams with their versions: one that has changed has a new version.

    It is valid from the first minute that is free, or from the later one that its configuration names. A stream that is
    not configured any more has a version by which it is removed. Nothing is written.
    """
    stored = read_versions(connection)
    removed = {stream: replace(known, is_removed=True) for stream, known in stored.items() if stream not in rules}
    planned: dict[str, StreamConfig] = {}
    for stream, config in (dict(rules) | removed).items():
        if stream not in stored:
            planned[stream] = replace(config, valid_from_us=0)
            continue
        if config.terms == UNKNOWN_TERMS:
            # It was removed before there were versions.
            continue
        known = _complete(stored[stream], config.terms)
        if not known.differs_from(config) and known.valid_from_us <= now_us:
            planned[stream] = known
            continue
        free_us = _find_free_minute(connection, stream, now_us)
        before = [version for version in reversed(known.versions) if version.valid_from_us < free_us]
        if before and not before[-1].differs_from(config):
            # Nothing has changed, or a version that is not valid yet is taken back.
            planned[stream] = _link(before)
        else:
            valid_from_us = max(free_us, config.valid_from_us) if before else 0
            planned[stream] = _link([*before, replace(config, valid_from_us=valid_from_us)])
    return planned


def save_versions(connection: Connection, planned: Mapping[str, StreamConfig], now_us: int) -> None:
    """Write the versions of some streams; what the store has of these streams beyond them is not valid any more."""
    stored = read_history(connection)
    for stream, config in planned.items():
        known = {one.config.valid_from_us: one for one in stored.get(stream, ())}
        told = {version.valid_from_us: version for version in config.versions}
        gone = [at_us for at_us in known if at_us > config.valid_from_us]
        if gone:
            connection.execute(
                delete(tables.pathway_versions).where(_version.stream == stream, _version.valid_from_us.in_(gone))
            )
        rows = [
            {
                "stream": stream,
                "valid_from_us": at_us,
                "registered_us": now_us,
                "config": json.dumps(encode_config(version), sort_keys=True),
            }
            for at_us, version in told.items()
            if at_us not in known or known[at_us].config.differs_from(version)
        ]
        if rows:
            connection.execute(dialect.upsert(connection, tables.pathway_versions), rows)


def save_unknown(connection: Connection, rules: Mapping[str, StreamConfig]) -> None:
    """Write the versions of the streams that the store does not know; all others stay as they were claimed."""
    known = read_names(connection)
    unknown = {stream: config for stream, config in rules.items() if stream not in known}
    if unknown:
        save_versions(connection, unknown, 0)


def encode_config(config: StreamConfig) -> dict[str, Any]:
    """Return what :func:`decode_config` reads; the version's own minute and those before it are not in it."""
    return {
        "pathway": encode_pathway(config.pathway),
        "shards": config.shards,
        "terms": None if config.terms == UNKNOWN_TERMS else list(astuple(config.terms)),
        "ignore_nodes": list(config.ignore_nodes),
        "order": config.order,
        "max_lost_ids": config.max_lost_ids,
        "is_removed": config.is_removed,
        "deadlines": [list(pair) for pair in config.deadlines],
    }


@lru_cache(MAX_DECODED)
def _decode_version(text: str, valid_from_us: int) -> StreamConfig:
    """Return the version of a stored row: pages and the feed of changes read the same ones again and again."""
    return replace(decode_config(json.loads(text)), valid_from_us=valid_from_us)


def decode_config(stored: Mapping[str, Any]) -> StreamConfig:
    """Read a stored version; what was stored before there were versions has a pathway and shards alone."""
    terms = stored.get("terms")
    told = {name: stored[name] for name in ("order", "max_lost_ids", "is_removed") if name in stored}
    return StreamConfig(
        decode_pathway(stored["pathway"]),
        UNKNOWN_TERMS if terms is None else WindowPolicy(*terms),
        stored["shards"],
        tuple(stored.get("ignore_nodes", ())),
        deadlines=tuple((node, deadline_us) for node, deadline_us in stored.get("deadlines", ())),
        **told,
    )


def encode_pathway(pathway: Pathway) -> list[Any]:
    """Return ``[nodes, [[source, target, …], …], stamps]``, where arrows name nodes by their places.

    Behind that, if any node only counts, ``[[name, before, behind, is_alone], …]`` of these.
    """
    arrows = [[group.source, *group.targets] for group in pathway.groups]
    counting = [list(astuple(node)) for node in pathway.counting]
    return [list(pathway.nodes), arrows, list(pathway.stamps), *([counting] if counting else [])]


def decode_pathway(stored: list[Any]) -> Pathway:
    """Read what :func:`encode_pathway` returns."""
    nodes, arrows, stamps, *counting = stored
    groups = tuple(Group(source, tuple(targets)) for source, *targets in arrows)
    counts = tuple(CountingNode(*node) for node in (counting[0] if counting else ()))
    return Pathway(tuple(nodes), groups, tuple(stamps), counts)


def _link(versions: list[StreamConfig]) -> StreamConfig:
    """Return the newest of some versions, the oldest first, with those before it."""
    *earlier, newest = (replace(version, earlier=()) if version.earlier else version for version in versions)
    return replace(newest, earlier=tuple(reversed(earlier))) if earlier else newest


def _complete(known: StreamConfig, terms: WindowPolicy) -> StreamConfig:
    """Return versions with terms where a store from before terms were stored has none."""
    told = [replace(one, terms=terms) if one.terms == UNKNOWN_TERMS else one for one in reversed(known.versions)]
    return _link(told)


def _find_free_minute(connection: Connection, stream: str, now_us: int) -> int:
    """Return the first whole minute that has not begun, and of which nothing has come, nor of any behind it; µs."""
    windows, books = tables.streams.c, tables.books.c
    last_us = connection.execute(select(windows.last_start_us).where(windows.stream == stream)).scalar()
    newest_us = connection.execute(
        select(func.max(tables.windows.c.window_start_us)).where(tables.windows.c.stream == stream)
    ).scalar()
    # What nodes sent that were not declared is in no window.
    unplaced = select(books.unplaced).where(books.stream == stream, books.unplaced != "[]")
    unplaced_ms = [start_ms for text in connection.execute(unplaced).scalars() for start_ms, _ in json.loads(text)]
    moments_us = [now_us, *(start_ms * 1_000 for start_ms in unplaced_ms)]
    moments_us += [start_us for start_us in (last_us, newest_us) if start_us is not None]
    return (int(max(moments_us)) // WINDOW_US + 1) * WINDOW_US
