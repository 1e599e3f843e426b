"""Worlds in which messages are lost for a known cause, or for none: counts of a few windows of a node.

They are by label, and those of the first window by second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopwatch.monitor.kernel.label_table import MAX_SHOWN_VALUES
from hopwatch.monitor.results import SECONDS, LabelCounts, LabelValueKind, SecondCounts

CAUSES: Final = ("partition", "host", "version", "schema", "producer", "deploy", "rebalance")
"""Kinds of causes; of a deploy the new version loses, of a rebalance the partition that moves."""
SHARES: Final = (0.01, 0.05, 0.2, 0.5, 0.9, 1.0)
"""Parts that a cause has of all that is missing."""
MIN_LOST: Final = 40
"""Messages that a cause loses, about, where nothing else is lost."""
NEW_VALUE: Final = 90
"""Version that a deploy brings."""
_LABELS: Final = ("host", "partition", "producer", "schema", "version")

NO_SECONDS: Final = SecondCounts((), ())

Values = dict[str, NDArray[np.int64]]
"""Value of each label of each message."""


@dataclass(slots=True)
class World:
    """Rows by label of a node, window by window, and the values that lose: none if all messages are lost alike.

    ``seconds`` are counts of the first window, and ``bursts`` its seconds in which a cause loses that begins in it.
    """

    windows: list[tuple[LabelCounts, ...]]
    guilty: set[tuple[str, str]] = field(default_factory=set)
    seconds: SecondCounts = field(default=NO_SECONDS)
    bursts: list[tuple[int, int]] = field(default_factory=list)


def make_world(seed: int, causes: int) -> World:
    """Make a world of one to four windows with so many causes at once, of random kinds and sizes."""
    random = np.random.default_rng(seed)
    world = World([])
    share = float(random.choice(SHARES)) if causes else 0.0
    background = 0.0 if share == 1 else float(random.choice((0.002, 0.01, 0.1)))
    sizes = {"host": 12, "partition": int(random.integers(4, 64)), "producer": 200, "schema": 6}
    traffic = _Traffic(
        {label: random.dirichlet(np.full(size, 0.5)) for label, size in sizes.items()},
        random.integers(0, sizes["host"], sizes["partition"]),
        random.integers(0, 3, sizes["host"]),
    )
    minutes = [traffic.draw(random, int(random.integers(5_000, 30_000))) for _ in range(random.integers(1, 5))]
    # Each minute has a loss without a cause of its own.
    losses = [random.random(len(one["host"])) < background * random.uniform(0.2, 2) for one in minutes]
    if not causes and random.random() < 0.5:
        # An outage: all that comes within some seconds.
        first = int(random.integers(len(losses[0])))
        losses[0][first : first + len(losses[0]) // 20] = True
    lost = sum(int(one.sum()) for one in losses)
    wanted = max(MIN_LOST, lost * share / max(0.01, 1 - share)) / max(1, causes)
    # What changes labels comes first.
    kinds = sorted(random.permutation(CAUSES)[:causes].tolist(), key=lambda kind: kind not in {"deploy", "rebalance"})
    guilt = [_choose_guilty(random, kind, minutes, wanted) for kind in kinds]
    for kind, (label, value, has_it) in zip(kinds, guilt, strict=True):
        world.guilty.add((label, str(value)))
        if kind in {"deploy", "rebalance"}:
            at = np.flatnonzero(has_it[0])[[0, -1]] * SECONDS // len(has_it[0])
            world.bursts.append((int(at[0]), int(at[1]) + 1))
        # A cause makes at least three times as many of its messages missing as are missing without it.
        total = sum(int(of_minute.sum()) for of_minute in has_it)
        probability = min(1.0, max(0.02, 3 * background, wanted / total))
        for one, of_minute in zip(losses, has_it, strict=True):
            np.logical_or(one, of_minute & (random.random(len(one)) < probability), out=one)
    world.windows = [_count_rows(*one) for one in zip(minutes, losses, strict=True)]
    second = np.arange(len(losses[0])) * SECONDS // len(losses[0])
    counted = (np.bincount(second, weights, SECONDS).astype(int).tolist() for weights in (None, losses[0]))
    world.seconds = SecondCounts(*map(tuple, counted))
    return world


class _Traffic(NamedTuple):
    """Popularity of the values of labels are; a partition is one host's, and a host has one version."""

    popular: dict[str, NDArray[np.float64]]
    host_of: NDArray[np.int64]
    version_of: NDArray[np.int64]

    def draw(self, random: Generator, messages: int) -> Values:
        """Draw the labels of a minute's messages."""
        drawn = {label: random.choice(len(of), messages, p=of) for label, of in self.popular.items()}
        drawn["host"] = self.host_of[drawn["partition"]]
        return drawn | {"version": self.version_of[drawn["host"]]}


def _choose_guilty(
    random: Generator, kind: str, minutes: list[Values], wanted: float
) -> tuple[str, int, list[NDArray[np.bool_]]]:
    """Return a label, its value that has about twice as many messages as are wanted, and which these are."""
    label = {"deploy": "host", "rebalance": "partition"}.get(kind, kind)
    spans = [np.ones(len(one[label]), bool) for one in minutes]
    # A deploy and a rebalance happen in the first minute.
    began, size = int(random.uniform(0.1, 0.6) * len(spans[0])), len(spans[0])
    if kind in {"deploy", "rebalance"}:
        spans[0][:began] = False
    if kind == "rebalance":
        # What comes while the partition moves is lost.
        spans = [np.arange(size) // (size // 5) == began // (size // 5), *(np.zeros_like(one) for one in spans[1:])]
    counts = sum(np.bincount(one[label][span], minlength=256) for one, span in zip(minutes, spans, strict=True))
    value = int(np.argmin(np.where(counts >= MIN_LOST, np.abs(counts - 2 * wanted), np.inf)))
    has_it = [span & (one[label] == value) for one, span in zip(minutes, spans, strict=True)]
    if kind == "rebalance":
        minutes[0]["host"][began:][minutes[0]["partition"][began:] == value] = 0
    elif kind == "deploy":
        label, value = "version", NEW_VALUE
        for one, chosen in zip(minutes, has_it, strict=True):
            one["version"][chosen] = NEW_VALUE
    return label, value, has_it


def _count_rows(values: Values, is_lost: NDArray[np.bool_]) -> tuple[LabelCounts, ...]:
    """Return the rows of a node, as the table by label has them."""
    rows: list[LabelCounts] = []
    for label in _LABELS:
        messages = np.bincount(values[label])
        lost = np.bincount(values[label], is_lost, len(messages)).astype(int)
        ranked = np.lexsort((np.arange(len(messages)), -messages, -lost))
        ranked = ranked[messages[ranked] > 0]
        shown, others = ranked[:MAX_SHOWN_VALUES], ranked[MAX_SHOWN_VALUES:]
        named = [(LabelValueKind.VALUE, str(one), messages[one], lost[one]) for one in shown.tolist()]
        if len(others):
            named.append((LabelValueKind.OTHER, "", messages[others].sum(), lost[others].sum()))
        rows += [
            LabelCounts(label, "router", kind, value, int(all_of), 0, 0, int(missing), 0)
            for kind, value, all_of, missing in named
        ]
    return tuple(rows)
