"""Worlds in which messages are slow for a known cause, or for none: rows by label of a node in a minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hopwatch.monitor.kernel.label_lags import BatchDepartures, count_label_lags, find_spans, split_label_lags
from hopwatch.monitor.kernel.labels import LabelledBatches
from hopwatch.monitor.results import LabelCounts, LabelValueKind

CAUSES: Final = ("host", "partition", "version", "schema", "stuck", "pauses")
"""Kinds of causes: a value that is slow all the time, a partition that stands still for a while, a host that pauses."""
MIN_SLOW: Final = 40
"""Messages that a cause makes slow, about."""
NEW_VALUE: Final = 90
_SECONDS: Final = 60
_LABELS: Final = ("host", "partition", "producer", "schema", "version")

Floats = NDArray[np.float64]
Values = dict[str, NDArray[np.int64]]
"""Value of each label of each message."""


@dataclass(slots=True)
class LagWorld:
    """Rows by label of a node, and the values that are slow: none if no value makes a difference."""

    rows: tuple[LabelCounts, ...]
    guilty: set[tuple[str, str]] = field(default_factory=set)


def make_lag_world(seed: int, causes: int) -> LagWorld:
    """Make a world with so many causes at once, of random kinds and sizes.

    Messages come in runs of one partition, those of a poll wait together, and some worlds have pauses of all hosts:
    what is slow by chance is slow in clusters.
    """
    random = np.random.default_rng(seed)
    event_s, values = _draw_messages(random)
    lag_s = _draw_lags(random, event_s, values)
    world = LagWorld(())
    for kind in random.permutation(CAUSES)[:causes].tolist():
        label, value = _slow_down(random, kind, event_s, values, lag_s)
        world.guilty.add((label, str(value)))
    world.rows = _count_rows(event_s, values, lag_s)
    return world


def _draw_messages(random: Generator) -> tuple[Floats, Values]:
    """Draw event times in order, s, and the labels of each message."""
    count, hosts, partitions = (int(random.integers(*span)) for span in ((3_000, 30_000), (2, 13), (4, 65)))
    event_s = np.sort(random.uniform(0, _SECONDS, count))
    # Producers send to one partition for a while.
    runs = np.cumsum(random.random(count) < 1 / random.integers(1, 200))
    popular = random.dirichlet(np.full(partitions, 2.0))
    partition = random.choice(partitions, runs[-1] + 1, p=popular)[runs]
    host = random.integers(0, hosts, partitions)[partition]
    values = {
        "host": host,
        "partition": partition,
        "producer": random.choice(50, count, p=random.dirichlet(np.full(50, 0.5))),
        "schema": random.choice(6, count, p=random.dirichlet(np.full(6, 0.5))),
        "version": random.integers(0, 3, hosts)[host],
    }
    return event_s, values


def _draw_lags(random: Generator, event_s: Floats, values: Values) -> Floats:
    """Draw lags that no label makes a difference to, s."""
    lag_s = random.lognormal(-3, random.uniform(0.2, 1.0), len(event_s))
    # A poll of a host takes a while, for all of its messages.
    poll = (event_s // random.uniform(0.05, 1)).astype(int) * 64 + values["host"]
    _, of_poll = np.unique(poll, return_inverse=True)
    lag_s *= random.lognormal(0, random.uniform(0, 0.7), of_poll.max() + 1)[of_poll]
    for _ in range(random.integers(0, 4) if random.random() < 0.5 else 0):
        _hold_back(event_s, lag_s, np.ones(len(event_s), bool), random.uniform(0, 58), random.uniform(0.5, 6))
    return lag_s


def _hold_back(event_s: Floats, lag_s: Floats, chosen: NDArray[np.bool_], start_s: float, length_s: float) -> None:
    """Let nothing of the chosen depart from a moment on, for some seconds."""
    departs_s = event_s + lag_s
    held = chosen & (departs_s >= start_s) & (departs_s < start_s + length_s)
    lag_s[held] = start_s + length_s - event_s[held]


def _slow_down(random: Generator, kind: str, event_s: Floats, values: Values, lag_s: Floats) -> tuple[str, int]:
    """Make a cause; return the label and the value that is slow."""
    label = {"stuck": "partition", "pauses": "host"}.get(kind, kind)
    counts = np.bincount(values[label])
    enough = np.flatnonzero((counts >= MIN_SLOW) & (counts <= 0.6 * len(event_s)))
    value = int(random.choice(enough)) if len(enough) else int(np.argmax(counts))
    chosen = values[label] == value
    if kind == "version":
        # A host's version is new from some second on.
        chosen = (values["host"] == int(random.choice(values["host"]))) & (event_s > random.uniform(0, 40))
        label, value = "version", NEW_VALUE
        values["version"] = np.where(chosen, NEW_VALUE, values["version"])
    slow_s = float(np.quantile(lag_s, 0.95)) * random.uniform(1.5, 10)
    if kind == "stuck":
        _hold_back(event_s, lag_s, chosen, random.uniform(0, 30), max(10 * slow_s, 20))
    elif kind == "pauses":
        for start_s in random.uniform(0, 55, 6):
            _hold_back(event_s, lag_s, chosen, start_s, max(4 * slow_s, 3))
    else:
        lag_s[chosen] += slow_s * random.lognormal(0, 0.2, int(chosen.sum()))
    return label, value


def _count_rows(event_s: Floats, values: Values, lag_s: Floats) -> tuple[LabelCounts, ...]:
    """Return the rows of a node; its batches are of one value each, and come every two seconds."""
    is_slow = lag_s >= np.quantile(lag_s, 0.95, method="inverted_cdf")
    span = find_spans(((event_s + lag_s) * 1e6).astype(np.int64), 0)
    sets = np.stack([values[label] for label in _LABELS] + [span], axis=1)
    distinct, of_set = np.unique(sets, axis=0, return_inverse=True)
    of_set = of_set.reshape(-1)
    departures, slow = np.bincount(of_set), np.bincount(of_set, is_slow).astype(np.int64)
    labels = [tuple(zip(_LABELS, map(str, one[:-1]), strict=True)) for one in distinct.tolist()]
    batches = LabelledBatches([0] * len(labels), labels, departures)
    tally = count_label_lags(batches, BatchDepartures(departures, slow, distinct[:, -1]))
    rows: list[LabelCounts] = []
    for (_, label), lags in split_label_lags(tally).items():
        rows += [
            LabelCounts(
                label, "norm", kind, value, of_value.departures, 0, 0, 0, 0,
                departures=of_value.departures, slow=of_value.slow, slow_dispersion=of_value.dispersion,
            )
            for (kind, value), of_value in sorted(lags.items())
            if kind is LabelValueKind.VALUE
        ]  # fmt: skip
    return tuple(rows)
