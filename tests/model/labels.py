"""Counts by label of one stream and window, each as SEMANTICS.md defines it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from tests.model.label_lags import Departures
from tests.model.pathway import Pathway
from tests.model.sets import NONE, Ids, WindowSets
from tests.model.wire import Received

MOST_LABELS = 8
MOST_VALUES = 50


class LabelSets:
    """Messages of a window by what batches say: at which node, by which label, which value."""

    def __init__(self, pathway: Pathway, inside: Sequence[Received]) -> None:
        """Take the batches that are in the window."""
        self.pathway = pathway
        self.said: dict[tuple[str, str], dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        for one in inside:
            for label, value in one.batch.labels.items():
                for seen in one.batch.observations:
                    self.said[one.batch.node, label][value].add(seen.message_id)

    def labels(self, node: str) -> list[str]:
        """Give the labels of a node that are counted."""
        return sorted(label for at, label in self.said if at == node)[:MOST_LABELS]

    def sources(self, node: str, label: str) -> list[str]:
        """Give the nodes whose values split N: itself, and from each node before it, back along each way, the first."""
        saying = {other for other in self.pathway.nodes if label in self.labels(other)}
        found = {node} & saying

        def go_back(to: str) -> None:
            for before in self.pathway.nodes:
                if to in self.pathway.next_nodes(before):
                    if before in saying:
                        found.add(before)
                    else:
                        go_back(before)

        go_back(node)
        return [other for other in self.pathway.nodes if other in found]

    def shown(
        self, node: str, sets: WindowSets, told: tuple[Ids, Ids], bounds: tuple[int, int | None], departed: Departures
    ) -> list[dict[str, Any]]:
        """Give the rows of N; `told` is what is lost there and what is in flight, `bounds` are those of its loss."""
        lost, waits = told
        messages = sets.expected(node) | sets.seen(node)
        rejected = sets.rejected(node)

        def row(label: str, source: str, kind: str, value: str, *several: Ids) -> dict[str, Any]:
            def total(of: Ids) -> int:
                return sum(len(ids & of) for ids in several)

            loss = total(lost)
            unsure = len(lost) - bounds[0]
            if kind == "OTHER" and unsure:
                unsure = loss
            return {
                "label": label,
                "said_at": source,
                "kind": kind,
                "value": value,
                "expected_or_seen": total(messages),
                "filtered": total(sets.stopped(node) - rejected),
                "rejected": total(rejected),
                "loss": loss,
                "in_flight": total(waits),
                "loss_lower": max(0, loss - unsure),
                "loss_upper": None if bounds[1] is None else loss + bounds[1] - len(lost),
                "departures": None,
                "slow": None,
                "slow_dispersion": None,
            }

        rows = []
        every = sorted({label for other in self.pathway.nodes for label in self.labels(other)})
        for label in every:
            for source in self.sources(node, label):
                values = {value: frozenset(ids) & messages for value, ids in self.said[source, label].items()}
                ranked = sorted((value for value in values if values[value]), key=_rank(values, lost, waits))
                slow = departed.count_slow(label) if source == node else Counter()
                first = sorted(ranked, key=lambda value: (*_rank(values, lost, waits)(value)[:2], -slow[value]))
                named, others = set(first[:MOST_VALUES]), first[MOST_VALUES:]
                own = [row(label, source, "VALUE", value, values[value]) for value in ranked if value in named]
                if others:
                    own.append(row(label, source, "OTHER", "", *(values[value] for value in others)))
                without = (sets.seen(source) & messages) - NONE.union(*values.values())
                if without:
                    own.append(row(label, source, "NONE", "", without))
                rows += [departed.fill(one, named) for one in own] if source == node else own
        return rows


def _rank(values: dict[str, Ids], lost: Ids, waits: Ids) -> Callable[[str], tuple[int, int, int, str]]:
    return lambda value: (-len(values[value] & lost), -len(values[value] & waits), -len(values[value]), value)


def mark_new_values(windows: Sequence[dict[str, Any]]) -> None:
    """Mark the values that a node says first in a window, where it said another one of the label before."""
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    for window in windows:
        here = [
            (row["said_at"], row["label"], row["value"])
            for node in window["nodes"]
            for row in node["labels"]
            if row["kind"] == "VALUE" and row["said_at"] == node["node"]
        ]
        for row in (row for node in window["nodes"] for row in node["labels"]):
            before = known[row["said_at"], row["label"]]
            row["is_new"] = row["kind"] == "VALUE" and bool(before) and row["value"] not in before
        for source, label, value in here:
            known[source, label].add(value)
