"""Log of the stream's own observations: the lag of the run's messages at each node, by step. Pure but for a lock.

Of a step at most so many messages are kept, evenly chosen: a run may have millions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.envelope import RecordView
from hopwatch.probes.contract.limits import NOT_STAMPED
from hopwatch.rate.message_ids import match_places
from hopwatch.rate.saturation import PointLag, Side

MAX_KEPT: Final = 20_000
"""Messages of a step whose lags are kept."""
PARTS: Final = 3
"""Parts of a step: warm-up, measured messages, and what comes before the next step."""
_US: Final = 1e6


class PointLog:
    """Log that a reader of observations writes and the rating reads; one thread may do each."""

    def __init__(self, stream: str, run: int) -> None:
        """Begin without a step; observations of other streams and messages are left out."""
        self._stream, self._run = stream, run
        self._lock = threading.Lock()
        self._firsts: list[int] = []
        self._strides: list[int] = []
        self._begun_us: list[int] = []
        self._kept: dict[tuple[int, str, Side], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]
        self._kept = defaultdict(list)
        self.probes: dict[str, set[str]] = defaultdict(set)
        """Names of the probes of each node that have stamped messages of the run."""

    def begin_step(self, first: int, begun_us: int, warm_up: int, measured: int) -> int:
        """Begin a step, and return its number; its messages of the warm-up are left out, and so are those behind it."""
        with self._lock:
            self._firsts += [first, first + warm_up, first + warm_up + measured]
            self._strides += [0, max(1, -(-measured // MAX_KEPT)), 0]
            self._begun_us += [begun_us] * PARTS
            return len(self._firsts) // PARTS - 1

    def note(self, buffer: bytes, view: RecordView) -> None:
        """Note the observations of a record that was read and checked."""
        if view.stream != self._stream or not view.count:
            return
        places = match_places(self._run, envelope.read_packed(buffer, view.message_ids, "u1"))
        with self._lock:
            if not self._firsts or not (places >= 0).any():
                return
            self.probes[view.node].add(view.probe)
            steps = np.searchsorted(np.array(self._firsts), places, "right") - 1
            for step in np.unique(steps[places >= 0]):
                stride = self._strides[step] if step >= 0 else 0
                if stride:
                    is_kept = (steps == step) & ((places - self._firsts[step]) % stride == 0)
                    self._keep(int(step), buffer, view, is_kept)

    def _keep(self, step: int, buffer: bytes, view: RecordView, is_kept: NDArray[np.bool_]) -> None:
        offsets = envelope.read_packed(buffer, view.event_offset_us, "<u4")[is_kept].astype(np.int64)
        due_s = (offsets + view.window_start_ms * 1_000 - self._begun_us[step]) / _US
        for side, span in ((Side.IN, view.lag_in_us), (Side.OUT, view.lag_out_us)):
            lags_us = envelope.read_packed(buffer, span, "<i8")
            if lags_us.size:
                lags_us = lags_us[is_kept]
                is_stamped = lags_us != NOT_STAMPED
                self._kept[step, view.node, side].append((due_s[is_stamped], lags_us[is_stamped] / _US))

    def get_points(self, number: int, nodes: Sequence[str]) -> list[PointLag]:
        """Return the lags at the points of the nodes in a step, counted from 0."""
        with self._lock:
            found = [
                (node, side, self._kept.get((PARTS * number + 1, node, side), [])) for node in nodes for side in Side
            ]
        return [
            PointLag(node, side, np.concatenate([due for due, _ in some]), np.concatenate([lags for _, lags in some]))
            for node, side, some in found
            if some
        ]
