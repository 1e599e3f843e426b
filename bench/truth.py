"""Expected results of every contestant: distinct messages, lost ids, and percentiles within the monitor's promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.work import NODES, Block

Key = tuple[int, int, int]
"""Number of the stream, of the window, of the node."""

QUANTILES: Final = (0.5, 0.95, 0.99)
RANK_ERROR: Final = (0.01, 0.002, 0.002)
"""How far from its rank a percentile may be, as a share of the stamps."""
LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")


class WrongResultError(AssertionError):
    """A contestant that does not find what is there; its speed says nothing."""


class Found(NamedTuple):
    """Results of one node in one window: ``lags`` holds p50, p95 and p99 of each of LAGS, in µs."""

    seen: int
    lost: int
    lost_print: bytes
    lags: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ExpectedResults:
    """Expected values, as Found, but ``lags`` of shape (node-windows, lags, quantiles, 2) are minimum and maximum."""

    keys: NDArray[np.int64]
    seen: NDArray[np.int64]
    lost: NDArray[np.int64]
    lost_prints: NDArray[np.uint8]
    lags: NDArray[np.int64]

    @classmethod
    def from_blocks(cls, blocks: Iterable[Block]) -> ExpectedResults:
        """Return what is there in the blocks."""
        rows = [
            (
                (block.stream, block.window, block.node),
                len(block.message_ids),
                len(block.lost_ids),
                np.frombuffer(print_of(block.lost_ids), np.uint8),
                [_brackets(lag) for lag in (block.lag_in_us, block.lag_out_us, block.lag_out_us - block.lag_in_us)],
            )
            for block in blocks
        ]
        return cls(*(np.array(column) for column in zip(*rows, strict=True)))

    @property
    def observations(self) -> int:
        """Return how many observations there are."""
        return int(self.seen.sum())

    def save(self, path: Path) -> None:
        """Keep it in a file."""
        np.savez(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def load(cls, path: Path) -> ExpectedResults:
        """Return what was kept."""
        with np.load(path) as kept:
            return cls(**{name: kept[name] for name in cls.__dataclass_fields__})

    def check(self, who: str, found: Mapping[Key, Found]) -> None:
        """Hold what a contestant found against what is there.

        Raises:
            WrongResultError: the first node-window that differs, with what was got and what is there.
        """
        if len(found) != len(self.keys):
            raise WrongResultError(f"{who} found {len(found):,} windows of nodes, there are {len(self.keys):,}")
        for place, (stream, window, node) in enumerate(self.keys.tolist()):
            got = found.get((stream, window, node))
            where = f"{who}, stream {stream}, window {window}, node {NODES[node]}"
            if got is None:
                raise WrongResultError(f"{where}: nothing was found")
            self._check(where, place, got)

    def _check(self, where: str, place: int, got: Found) -> None:
        counts = int(self.seen[place]), int(self.lost[place])
        if counts != (got.seen, got.lost):
            raise WrongResultError(
                f"{where}: {counts[0]:,} seen and {counts[1]:,} lost, got {got.seen:,} and {got.lost:,}"
            )
        if self.lost_prints[place].tobytes() != got.lost_print:
            raise WrongResultError(f"{where}: {got.lost:,} ids are lost, and others were named")
        for name, bounds, values in zip(LAGS, self.lags[place].tolist(), got.lags, strict=True):
            for quantile, (least, most), value in zip(QUANTILES, bounds, values, strict=True):
                if not least <= value <= most:
                    said = f"p{quantile * 100:g} of {name} is within {least:,} and {most:,}"
                    raise WrongResultError(f"{where}: {said}, got {value:,}")


def print_of(ids: NDArray[Any]) -> bytes:
    """Return 32 bytes that stand for a set of ids, given in any order as 16 bytes each, shape (n, 2)."""
    packed = np.ascontiguousarray(ids).tobytes()
    return sha256(b"".join(sorted(packed[at : at + 16] for at in range(0, len(packed), 16)))).digest()


def _brackets(lag_us: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return for each quantile the values at the ranks that the promise still allows."""
    most = len(lag_us) - 1
    ranks = [
        (max(0, int((q - error) * most)), min(most, int(np.ceil((q + error) * most))))
        for q, error in zip(QUANTILES, RANK_ERROR, strict=True)
    ]
    ordered = np.partition(lag_us, sorted({rank for pair in ranks for rank in pair}))
    return [(int(ordered[low]), int(ordered[high])) for low, high in ranks]
