"""Windows made to measure, as the monitor concludes them: chains of nodes, in which all is well or every node loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hopwatch.alerts import rule_config
from hopwatch.alerts.decision.rules import AlertRules
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.masks import Ids, ids_from_bytes
from hopwatch.monitor.kernel.tally import LostIds, NodeLags, empty_tally
from hopwatch.monitor.results import NodeResult, Quantiles, Status, Verdict, WindowResult
from hopwatch.monitor.settings import DEFAULTS, Settings
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import ID_BYTES

Dice = np.random.Generator

START_US: Final = 1_767_571_200_000_000
"""The first window of all benches starts on Monday, 2026-01-05T00:00:00Z."""
MESSAGES: Final = 100_000
LOST_RATIO: Final = 0.02
"""What part of what is expected at it a node loses where every node does: twice what a page takes."""
LOST_IDS: Final = 20
_LAG_US: Final = 50_000
_SPREAD: Final = 0.2


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many streams, each a chain of so many nodes."""

    streams: int
    nodes: int

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each stream, by its name."""
        names = tuple(f"n{number}" for number in range(self.nodes))
        return {f"s{number}": names for number in range(self.streams)}

    @property
    def settings(self) -> Settings:
        """A configuration of these streams and of nothing else."""
        return _settings_of(self.paths)

    def stream_rules(self) -> Mapping[str, StreamConfig]:
        """Return what the monitor knows of the streams."""
        return rules_of(self.paths)

    def alert_rules(self) -> AlertRules:
        """Return the alert rules that are there without any configuration."""
        return rule_config.build_rules(self.settings)


def _settings_of(paths: Mapping[str, tuple[str, ...]]) -> Settings:
    told = {name: {"path": " -> ".join(nodes)} for name, nodes in paths.items()}
    return Settings({"streams": told}, DEFAULTS)


def rules_of(paths: Mapping[str, tuple[str, ...]]) -> Mapping[str, StreamConfig]:
    """Return what the monitor knows of streams that are chains of these nodes."""
    return _settings_of(paths).stream_configs()


def window(  # noqa: PLR0913 - all that a window is made of
    stream: str,
    nodes: tuple[str, ...],
    start_us: int,
    dice: Dice,
    *,
    is_lossy: bool = False,
    messages: int = MESSAGES,
) -> WindowResult:
    """Return a final window of a chain whose books are complete; ``is_lossy`` lets each node lose some messages."""
    known = left = int(dice.poisson(messages))
    lags_us = (_LAG_US * np.exp(_SPREAD * dice.normal(size=(len(nodes), 3)))).astype(int).tolist()
    duplicates = dice.poisson(1, len(nodes)).tolist()
    made = []
    for place, name in enumerate(nodes):
        lost = round(LOST_RATIO * left) if is_lossy else 0
        made.append(_node(name, left, lost, lags_us[place], duplicates[place]))
        left -= lost
    gone = known - left
    return WindowResult(
        stream=stream,
        window_start_us=start_us,
        status=Status.FINAL,
        revision=0,
        verdict=Verdict.LOSSY if gone else Verdict.CLEAN,
        reasons=(),
        known=known,
        delivered=left,
        filtered=0,
        rejected=0,
        lost=gone,
        partial=0,
        lost_lower=gone,
        lost_upper=gone,
        loss_ratio=gone / known,
        in_flight=0,
        recovered=0,
        lag_us=made[-1].lag_out_us,
        nodes=tuple(made),
    )


def _node(name: str, expected: int, lost: int, lags_us: list[int], duplicates: int) -> NodeResult:
    counts: dict[str, Any] = dict.fromkeys(NodeResult.__dataclass_fields__, 0)
    seen = expected - lost
    counts |= {"node": name, "expected": expected, "seen": seen, "arrived": seen, "departed": seen}
    counts |= {"lost_in_transit": lost, "loss": lost, "loss_lower": lost, "loss_upper": lost}
    counts |= {"loss_ratio": lost / expected, "coverage": 1.0, "duplicates_in": duplicates, "overdue_ids": ()}
    names = ("lag_in_us", "lag_out_us", "inside_us")
    counts |= {name: _quantiles(seen, lag_us) for name, lag_us in zip(names, lags_us, strict=True)}
    return NodeResult(**counts | {"process_duration_p95_us": lags_us[1] - lags_us[0]})


def _quantiles(count: int, p95_us: int) -> Quantiles:
    return Quantiles(count, p95_us // 4, p95_us // 2, p95_us, p95_us * 3 // 2, p95_us * 2)


def conclusion(result: WindowResult, of: StreamConfig, dice: Dice) -> Conclusion:
    """Return a window with the digests and the lost ids that go with it; all nodes share the figures of one."""
    digests = [tdigest.build((_LAG_US * dice.lognormal(size=1_000)).astype(np.int64)) for _ in range(3)]
    tally = replace(empty_tally(of.pathway), lags=(NodeLags(*digests),) * len(result.nodes))
    lost = tuple(LostIds.from_ids(ids(dice, LOST_IDS if node.loss_lower else 0)) for node in result.nodes)
    return Conclusion(result, tally, lost, is_settled=True, books=b"", changed=None)


def move_conclusion(one: Conclusion, start_us: int) -> Conclusion:
    """Return the same window at another time."""
    return one._replace(result=replace(one.result, window_start_us=start_us))


def ids(dice: Dice, count: int) -> Ids:
    """Return so many message ids."""
    return ids_from_bytes(dice.bytes(ID_BYTES * count))
