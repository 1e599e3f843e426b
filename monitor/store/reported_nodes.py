"""Nodes of windows as ``hopwatch report --json`` and the API show them, from their rows at once.

A window may have thousands of nodes, and a program may ask for two hundred windows a second: objects in between take
several times as long as the query.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from hopwatch.monitor.results import NodeResult
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.tables import NODE_DIGESTS, QUANTILE_FIELDS

Json = dict[str, Any]

_EMPTY: Final[Json] = dict.fromkeys((*(field.name for field in fields(NodeResult)), "lost_ids", "slowest", "labels"))
"""A node without values, which gives its fields their order."""
_FIGURES: Final = tuple(field.name for field in fields(NodeResult) if field.name not in NODE_DIGESTS)
_LAGS_AT: Final = tuple((name, len(_FIGURES) + place * len(QUANTILE_FIELDS)) for place, name in enumerate(NODE_DIGESTS))
"""Where in a row of the query below the figures of each lag begin."""
_FIRST_US: Final = -(2**63)
_END_US: Final = 2**63 - 1
_node: Final = tables.node_windows.c
_SELECT: Final = (
    select(
        *(_node[name] for name in _FIGURES),
        *(_node[f"{name}_{part}"] for name in NODE_DIGESTS for part in QUANTILE_FIELDS),
        _node.window_start_us,
        _node.slowest,
    )
    .where(_node.stream == bindparam("of_stream"), _node.window_start_us >= bindparam("from_us"))
    .where(_node.window_start_us < bindparam("to_us"))
    .order_by(*tables.node_windows.primary_key)
)
"""Built once: to build it takes as long as to run it."""


def bind_range(from_us: int | None, to_us: int | None) -> dict[str, int]:
    """Return the parameters ``from_us`` and ``to_us`` of a query, the farthest ones where the range has no end."""
    return {"from_us": _FIRST_US if from_us is None else from_us, "to_us": _END_US if to_us is None else to_us}


def read_nodes_json(
    connection: Connection, stream: str, from_us: int | None, to_us: int | None
) -> dict[int, list[Json]]:
    """Query the nodes of the windows of a stream that start in ``[from_us, to_us)``, by the window's start in µs.

    Each has its fields, room for ``lost_ids`` and ``labels``, and the ``slowest`` messages, None where none were kept.
    """
    found: dict[int, list[Json]] = defaultdict(list)
    for row in connection.execute(_SELECT, {"of_stream": stream} | bind_range(from_us, to_us)):
        values = tuple(row)
        told = _EMPTY.copy()
        told.update(zip(_FIGURES, values, strict=False))
        for name, at in _LAGS_AT:
            lag = values[at : at + len(QUANTILE_FIELDS)]
            told[name] = None if lag[0] is None else dict(zip(QUANTILE_FIELDS, lag, strict=True))
        told["slowest"] = json.loads(values[-1] or "null")
        told["overdue_ids"] = json.loads(told["overdue_ids"] or "[]")
        found[values[-2]].append(told)
    return found
