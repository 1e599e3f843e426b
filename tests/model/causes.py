"""Likely causes of what is missing at a node in a window, value by value, as SEMANTICS.md defines them."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log
from typing import Any

Row = dict[str, Any]


def mark_causes(window: dict[str, Any]) -> None:
    """Give each node of a window its causes, by its rows of labels, in which new values are marked."""
    for node in window["nodes"]:
        node["causes"] = _causes(node["labels"])


def _causes(rows: list[Row]) -> list[Row]:
    values = [row for row in rows if row["kind"] != "OTHER"]
    count = len(values) + sum(_messages(row) for row in rows if row["kind"] == "OTHER")
    tested = [(likelihood_ratio(row, rows), row) for row in values]
    likely = [(ratio, row) for ratio, row in tested if ratio > 0 and count * exp(-ratio / 2) < 0.001]
    groups = group_likely(likely, rows)
    return [_cause(rank, row, rows) for rank, group in enumerate(groups, 1) for row in group]


def group_likely(likely: list[tuple[float, Row]], rows: list[Row]) -> list[list[Row]]:
    """Give the likely values of each cause, the likeliest first."""
    groups: list[list[Row]] = []
    for _, row in sorted(
        likely, key=lambda one: (-one[0], *(one[1][name] for name in ("label", "said_at", "kind", "value")))
    ):
        own = next((group for group in groups if _alike(group[0], row, rows)), None)
        if own is None:
            if len(groups) == 3:
                break
            groups.append([row])
        elif len(own) < 4 and _share(row, rows) >= Fraction(9, 10) * _share(own[0], rows):
            own.append(row)
    return groups


def _messages(row: Row) -> int:
    return int(row["expected_or_seen"] - row["in_flight"])


def _of_label(row: Row, rows: list[Row]) -> list[Row]:
    return [one for one in rows if (one["label"], one["said_at"]) == (row["label"], row["said_at"])]


def _share(row: Row, rows: list[Row]) -> Fraction:
    lost = sum(one["loss"] for one in _of_label(row, rows))
    return Fraction(row["loss"], lost) if lost else Fraction(0)


def likelihood_ratio(row: Row, rows: list[Row]) -> float:
    """Give G of a row, of all rows of its node."""
    own = _of_label(row, rows)
    lost, messages = sum(one["loss"] for one in own), sum(map(_messages, own))
    if not lost:
        return 0.0
    share, expected = _share(row, rows), Fraction(_messages(row), messages)
    if share <= expected:
        return 0.0
    ratio = float(row["loss"] * log(share / expected))
    if share < 1:
        ratio += (lost - row["loss"]) * log((1 - share) / (1 - expected))
    return 2 * ratio


def _alike(first: Row, row: Row, rows: list[Row]) -> bool:
    shares = _share(first, rows), _share(row, rows)
    if sum(shares) - 1 >= min(shares) / 2:
        return True
    pairs = ((first["loss"], row["loss"]), (_messages(first), _messages(row)))
    is_other = (first["label"], first["said_at"]) != (row["label"], row["said_at"])
    return is_other and all(10 * min(pair) >= 9 * max(pair) for pair in pairs)


def _cause(rank: int, row: Row, rows: list[Row]) -> Row:
    own = _of_label(row, rows)
    told = {name: row[name] for name in ("label", "said_at", "kind", "value", "is_new")}
    return told | {
        "rank": rank,
        "lost": row["loss"],
        "messages": _messages(row),
        "other_lost": sum(one["loss"] for one in own) - row["loss"],
        "other_messages": sum(map(_messages, own)) - _messages(row),
    }
