"""Target of a rating: conditions on end-to-end lag and on loss. Pure.

A target is written ``e2e p95 <= 500 ms and loss = 0``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

GRAMMAR: Final = '"e2e p50|p95|p99 <= N ms|s", "loss = 0" or "loss <= N %", joined by "and"'
"""Allowed forms, for error messages."""
_LAG: Final = re.compile(r"e2e\s+p(50|95|99)\s*<=\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(ms|s)", re.IGNORECASE)
_NO_LOSS: Final = re.compile(r"loss\s*=\s*0(?:\s*%)?", re.IGNORECASE)
_LOSS: Final = re.compile(r"loss\s*<=\s*([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%", re.IGNORECASE)
_UNITS_S: Final = {"ms": 1e-3, "s": 1.0}
_PERCENT: Final = 100.0


class TargetError(ValueError):
    """The text is no target."""


class LagCondition(NamedTuple):
    """Bound of a quantile of the end-to-end lag, in seconds."""

    quantile: float
    limit_s: float


@dataclass(frozen=True, slots=True)
class Target:
    """Conditions that all hold; without a ``max_loss_ratio`` nothing is said of loss, 0.0 allows none."""

    lags: tuple[LagCondition, ...]
    max_loss_ratio: float | None = None

    def __str__(self) -> str:
        """Return the target as :func:`parse_target` reads it."""
        parts = [f"e2e p{one.quantile * 100:.0f} <= {one.limit_s * 1e3:.12g} ms" for one in self.lags]
        if self.max_loss_ratio is not None:
            parts.append(f"loss <= {self.max_loss_ratio * _PERCENT:.12g} %" if self.max_loss_ratio else "loss = 0")
        return " and ".join(parts)


def parse_target(text: str) -> Target:
    """Parse a target.

    Raises:
        TargetError: a condition is of none of the allowed forms, stands twice, or is out of its bounds.
    """
    lags: dict[float, LagCondition] = {}
    losses: list[float] = []
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        if found := _LAG.fullmatch(part):
            one = LagCondition(int(found[1]) / _PERCENT, float(found[2]) * _UNITS_S[found[3].lower()])
            if not one.limit_s:
                raise TargetError(f"a lag is bounded by more than 0, got {part!r:.80}")
            if one.quantile in lags:
                raise TargetError(f"p{found[1]} is bounded twice in {text!r:.80}: bound it once")
            lags[one.quantile] = one
        elif _NO_LOSS.fullmatch(part):
            losses.append(0.0)
        elif found := _LOSS.fullmatch(part):
            losses.append(float(found[1]) / _PERCENT)
        else:
            raise TargetError(f"a target is {GRAMMAR}; got {part!r:.80}")
    if len(losses) > 1:
        raise TargetError(f"loss is bounded twice in {text!r:.80}: bound it once")
    if losses and losses[0] >= 1:
        raise TargetError(f"a loss is bounded by less than 100 %, got {losses[0] * _PERCENT:g} %")
    return Target(tuple(sorted(lags.values())), losses[0] if losses else None)
