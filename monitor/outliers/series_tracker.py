"""Tracker of the series of a stream: finds outliers window by window, and again when a window changes.

The memory of a series is kept as it was at a whole hour before which no window can change any more, and the values
since. A window that comes next enters the memory as it is now. One that is judged anew, or comes between others, is
entered from the kept memory on, with all behind it, and only in the series whose value is another one now. So scores
are those of a run that has known all windows from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.explanation import explain
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding, Retraction
from hopwatch.monitor.outliers.quantities import Floats, Ints, Quantity
from hopwatch.monitor.outliers.state import States
from hopwatch.monitor.outliers.window_values import TRACKED_QUANTITIES, extract_values, scale_values
from hopwatch.monitor.results import WindowResult
from hopwatch.probes.contract.limits import WINDOW_US

GAP, USUAL, NOTICED, OUTLIER, HELD = range(5)
"""Signs of a series in a window; ``HELD`` is a gap in an episode that is an outlier."""

Signs = NDArray[np.uint8]


class SavedMemory(Protocol):
    """Saved memory of a stream's series before :attr:`SeriesTracker.base_us`."""

    def states(self, rows: Ints) -> States:
        """Return the memory of some series, by their places in the stream; it is the caller's to change."""


@dataclass(slots=True)
class SeriesTracker:
    """The series of one stream: ``values`` and ``signs`` by the start of their window, ``states`` behind the newest.

    ``findings`` are the latest findings that made an episode an outlier, by the place of their series, in time order.
    """

    nodes: tuple[str, ...]
    base_us: int = 0
    values: dict[int, Floats] = field(default_factory=dict)
    signs: dict[int, Signs] = field(default_factory=dict)
    states: States = field(init=False)
    findings: dict[int, list[OutlierFinding]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with series of which nothing has been seen."""
        self.states = state.new_states(self.count)

    @property
    def count(self) -> int:
        """Number of series."""
        return len(self.nodes) * len(TRACKED_QUANTITIES)

    @property
    def newest_us(self) -> int:
        """The start of the newest window that has entered."""
        return max(self.values, default=self.base_us - WINDOW_US)

    def enter(self, results: Sequence[WindowResult], kept: SavedMemory) -> FindingChanges:
        """Let final windows enter, those that have entered before included.

        A window that is older than what can change is not looked at.
        """
        came = {result.window_start_us: extract_values(result, self.nodes) for result in results}
        came = {start_us: came[start_us] for start_us in sorted(came) if start_us >= self.base_us}
        newest_us = self.newest_us
        again = {start_us: values for start_us, values in came.items() if start_us <= newest_us}
        news = self._enter_again(again, kept)
        every = np.arange(self.count)
        for start_us in sorted(came.keys() - again.keys()):
            self.values[start_us] = came[start_us]
            self.signs[start_us] = np.zeros(self.count, np.uint8)
            news.findings.extend(self._enter_one(self.states, every, start_us))
        return news

    def restore_windows(self, values: Mapping[int, Floats], told: Sequence[OutlierFinding], kept: SavedMemory) -> None:
        """Enter the windows since the kept memory, all of which have entered before; ``told`` is what was before it."""
        places = {node: place for place, node in enumerate(self.nodes)}
        for finding in sorted(told, key=lambda finding: finding.window_start_us):
            row = places[finding.node] * len(TRACKED_QUANTITIES) + TRACKED_QUANTITIES.index(finding.why.quantity)
            self.findings.setdefault(row, []).append(finding)
        self.values = {start_us: values[start_us] for start_us in sorted(values)}
        self.signs = {start_us: np.zeros(self.count, np.uint8) for start_us in self.values}
        self._rerun(np.arange(self.count), kept)

    def base_at(self, hour_us: int, kept: SavedMemory) -> States:
        """Return the memory before a whole hour, and forget the values before it: they cannot change any more."""
        states, every = kept.states(np.arange(self.count)), np.arange(self.count)
        for start_us in [start_us for start_us in sorted(self.values) if start_us < hour_us]:
            detector.score_in_place(states, every, self._moments(every, start_us), scale_values(self.values[start_us]))
            del self.values[start_us], self.signs[start_us]
        self.base_us = hour_us
        self.findings = {row: _findings_since(found, hour_us) for row, found in self.findings.items()}
        return states

    def release_memory(self) -> None:
        """Forget the values: no window that has entered will be judged again."""
        self.base_us = self.newest_us + WINDOW_US
        self.values.clear()
        self.signs.clear()

    def find_outliers(self, start_us: int) -> dict[str, tuple[OutlierFinding, ...]]:
        """Return the outliers of each node in a window, if any; a node without values is left out.

        An outlier is in every window of its episode, as long as its figures are kept.
        """
        if start_us not in self.signs:
            return {}
        signs = self.signs[start_us].reshape(len(self.nodes), len(TRACKED_QUANTITIES))
        is_odd = (signs == OUTLIER).any(axis=1)
        is_well = ((signs == USUAL) | (signs == NOTICED)).any(axis=1) & ~(signs == HELD).any(axis=1)
        found: dict[str, tuple[OutlierFinding, ...]] = {}
        for place in np.flatnonzero(is_odd | is_well).tolist():
            rows = np.flatnonzero(signs[place] == OUTLIER) + place * len(TRACKED_QUANTITIES)
            told = [self._findings_at(row, start_us) for row in rows.tolist()]
            if all(told):
                found[self.nodes[place]] = tuple(finding for of_row in told for finding in of_row)
        return found

    def _findings_at(self, row: int, start_us: int) -> list[OutlierFinding]:
        return [finding for finding in self.findings.get(row, ()) if finding.window_start_us <= start_us][-1:]

    def _enter_again(self, came: Mapping[int, Floats], kept: SavedMemory) -> FindingChanges:
        """Take the values of windows that entered before, and find anew what has changed by them."""
        is_other = np.zeros(self.count, np.bool_)
        nothing = np.full((len(self.nodes), len(TRACKED_QUANTITIES) + 1), np.nan)
        from_us = self.newest_us
        for start_us, values in came.items():
            before = self.values.get(start_us, nothing)
            now, then = scale_values(values), scale_values(before)
            differs = (now != then) & ~(np.isnan(now) & np.isnan(then))
            if start_us not in self.values:
                # A gap between windows may lie in an episode that has been told.
                differs[[row for row, found in self.findings.items() if found]] = True
            self.values[start_us] = values
            self.signs.setdefault(start_us, np.zeros(self.count, np.uint8))
            if differs.any():
                is_other |= differs
                from_us = min(from_us, start_us)
        self.values = dict(sorted(self.values.items()))
        rows = np.flatnonzero(is_other)
        if not len(rows):
            return FindingChanges([], [])
        for row in rows.tolist():
            self.findings[row] = [one for one in self.findings.get(row, ()) if one.window_start_us < self.base_us]
        findings = self._rerun(rows, kept)
        erased = [Retraction(*self._series(row), from_us) for row in rows.tolist()]
        return FindingChanges(erased, [finding for finding in findings if finding.window_start_us >= from_us])

    def _rerun(self, rows: Ints, kept: SavedMemory) -> list[OutlierFinding]:
        """Enter all values of some series from the kept memory on; return what is found."""
        states, findings = kept.states(rows), list[OutlierFinding]()
        for start_us in self.values:
            findings += self._enter_one(states, rows, start_us)
        self.states[rows] = states
        return findings

    def _enter_one(self, states: States, rows: Ints, start_us: int) -> list[OutlierFinding]:
        """Enter the values of one window into some series, whose memory ``states`` is; note what is said of them."""
        values = self.values[start_us]
        judged = scale_values(values)[rows]
        scores = detector.score_in_place(states, np.arange(len(rows)), self._moments(rows, start_us), judged)
        self.signs[start_us][rows] = _decide_signs(states, scores, judged)
        findings: list[OutlierFinding] = []
        for at in np.flatnonzero(scores.notice | scores.outlier).tolist():
            row = int(rows[at])
            node, quantity = self._series(row)
            shown = float(values[row // len(TRACKED_QUANTITIES), row % len(TRACKED_QUANTITIES)])
            why = explain(quantity, shown, scores, at)
            findings.append(OutlierFinding(start_us, node, bool(scores.outlier[at]), why))
            if scores.outlier[at]:
                self.findings.setdefault(row, []).append(findings[-1])
        return findings

    def _series(self, row: int) -> tuple[str, Quantity]:
        return self.nodes[row // len(TRACKED_QUANTITIES)], TRACKED_QUANTITIES[row % len(TRACKED_QUANTITIES)]

    @staticmethod
    def _moments(rows: Ints, start_us: int) -> Ints:
        return np.full(len(rows), start_us, np.int64)


def _findings_since(found: list[OutlierFinding], moment_us: int) -> list[OutlierFinding]:
    """Return what was found from a moment on, and the latest before it: its episode may last."""
    before = [finding for finding in found if finding.window_start_us < moment_us]
    return before[-1:] + found[len(before) :]


def _decide_signs(states: States, scores: detector.Scores, values: Floats) -> Any:  # noqa: ANN401 - an array of signs
    """Return what is said of each series after one value each."""
    is_gap, told = np.isnan(values), states["told"]
    of_values = np.where(scores.since_us > 0, told + USUAL, USUAL)
    of_gaps = np.where((told == OUTLIER - USUAL) & detector.is_episode_ongoing(states), HELD, GAP)
    return np.where(is_gap, of_gaps, of_values)
