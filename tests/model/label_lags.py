"""Slow departures of one stream, window and node by label, and the likely causes of lag, as SEMANTICS.md has them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp
from typing import Any

from tests.model.causes import group_likely, likelihood_ratio
from tests.model.lag import quantile
from tests.model.sets import AtNode
from tests.model.wire import Received

SPAN_US = 2_000_000
MOST_SPANS = 64
FEWEST_FREE = 10

Row = dict[str, Any]


class Departures:
    """Departures from a node in a window: lag, and when and with which labels the batch of each came."""

    def __init__(self, inside: Sequence[Received], node: str, start_us: int, *, one_sided: bool) -> None:
        """Take all batches of the window."""
        self.all: list[tuple[int, int, Mapping[str, str]]] = []
        for one in inside:
            for seen in one.batch.observations if one.batch.node == node else ():
                at = AtNode()
                at.add(seen, one_sided=one_sided)
                span = max(0, min((one.arrival_us - start_us) // SPAN_US, MOST_SPANS - 1))
                self.all += [(lag_us, span, one.batch.labels) for lag_us in at.lags_out_us]
        self.p95_us = quantile([lag_us for lag_us, *_ in self.all], 95) if self.all else 0

    def fill(self, row: Row, named: set[str]) -> Row:
        """Add to a row of a label that the node says what departed of it; `named` are the values with rows."""
        label = row["label"]
        own = [one for one in self.all if self._is_of(row, one[2].get(label), named)]
        of_values = self._dispersions(label)
        value = row["value"] if row["kind"] == "VALUE" else None
        return row | {
            "departures": len(own),
            "slow": sum(lag_us >= self.p95_us for lag_us, *_ in own),
            "slow_dispersion": None if of_values is None or row["kind"] == "OTHER" else of_values.get(value),
        }

    def count_slow(self, label: str) -> Counter[str]:
        """Give the slow departures by value of a label."""
        slow = [labels for lag_us, _, labels in self.all if lag_us >= self.p95_us]
        return Counter(labels[label] for labels in slow if label in labels)

    @staticmethod
    def _is_of(row: Row, value: str | None, named: set[str]) -> bool:
        if value is None:
            return bool(row["kind"] == "NONE")
        return (
            bool(row["value"] == value)
            if value in named and row["kind"] == "VALUE"
            else (row["kind"] == "OTHER" and value not in named)
        )

    def _dispersions(self, label: str) -> dict[str | None, float] | None:
        """Give the dispersion of each value, None for no value; none at all where too little is known."""
        cells: dict[str | None, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
        for lag_us, span, labels in self.all:
            cells[labels.get(label)][span].append(lag_us >= self.p95_us)
        if sum(len(spans) - 1 for spans in cells.values()) < FEWEST_FREE:
            return None
        more: dict[str | None, Fraction] = {}
        alike: dict[str | None, Fraction] = {}
        for value, spans in cells.items():
            every = [is_slow for of_span in spans.values() for is_slow in of_span]
            share = Fraction(sum(every), len(every))
            widened = Fraction(len(spans), max(1, len(spans) - 1))
            chances = {span: len(of_span) * share * (1 - share) for span, of_span in spans.items()}
            squares = [(sum(of_span) - len(of_span) * share) ** 2 * widened for of_span in spans.values()]
            more[value] = sum(squares, Fraction(0)) - sum(chances.values())
            alike[value] = sum((chances[span] * (len(of_span) - 1) for span, of_span in spans.items()), Fraction(0))

        def correlation(values: set[str | None]) -> Fraction:
            of_all = sum((alike[value] for value in values), Fraction(0))
            return max(Fraction(0), sum((more[value] for value in values), Fraction(0)) / of_all) if of_all else of_all

        def dispersion(value: str | None) -> Fraction:
            mixed = correlation({*cells}) / 4 + correlation({*cells} - {value}) * 3 / 4
            return 1 + mixed * (together[value] - 1)

        together = {
            value: Fraction(sum(len(of_span) ** 2 for of_span in spans.values()), sum(map(len, spans.values())))
            for value, spans in cells.items()
        }
        return {value: round(float(dispersion(value)), 3) for value in cells}


def mark_lag_causes(window: dict[str, Any]) -> None:
    """Give each node of a window its causes of lag, by its rows of labels, in which new values are marked."""
    for node in window["nodes"]:
        node["lag_causes"] = find_lag_causes(node["labels"])


def find_lag_causes(rows: list[Row]) -> list[Row]:
    """Give the likely causes of lag of a node, of its rows of labels."""
    own = [row for row in rows if row["departures"]]
    values = [row for row in own if row["slow_dispersion"] is not None]
    count = len(values) + sum(row["departures"] for row in own if row["kind"] == "OTHER")
    as_lost = {
        id(row): row | {"loss": row["slow"], "expected_or_seen": row["departures"], "in_flight": 0} for row in own
    }
    every = list(as_lost.values())

    def others(row: Row, name: str) -> int:
        total: int = sum(one[name] for one in own if one["label"] == row["label"])
        return total - int(row[name])

    tested = [
        (likelihood_ratio(as_lost[id(row)], every) / row["slow_dispersion"], as_lost[id(row)])
        for row in values
        if row["slow"] * others(row, "departures") >= 2 * others(row, "slow") * row["departures"]
    ]
    likely = [one for one in tested if one[0] > 0 and count * exp(-one[0] / 2) < 0.001]
    return [
        {name: row[name] for name in ("label", "kind", "value", "slow", "departures", "is_new")}
        | {"rank": rank, "other_slow": others(row, "slow"), "other_departures": others(row, "departures")}
        for rank, group in enumerate(group_likely(likely, every), 1)
        for row in group
    ]
