"""Account of a run that is not Hopwatch's: what sender and receivers wrote down, and what is in the topics."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from hopwatch.demo.truth import Ids, NodeAction, Truth

TAKEN: Final = (NodeAction.HANDED_ON, NodeAction.UNHEARD)
_JSON_BLOCK: Final = re.compile(r"^\{$.*?^\}$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReceiverAccount:
    """Account of one receiver; ``taken`` and ``refused`` are distinct messages, the counts are of all times."""

    name: str
    taken: Ids
    refused: Ids
    repeat_count: int
    """Times that a message was taken which had been taken before."""
    refused_again_count: int
    """Times that a message came which had been refused before."""
    kept: Ids
    """Distinct messages in the topic of what was rejected."""
    kept_count: int
    """Records there."""
    deferral_count: int
    """Records in the retry topics."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Account of a run: what the gate acknowledged, and each receiver's."""

    acknowledged: Ids
    stopped: Ids
    """Messages that router or norm dropped, filtered or rejected as the faults wanted."""
    dropped: Ids
    """Those of them that were dropped, and are to be reported as lost."""
    repeat_count: int
    """Times that norm handed on a message again, as the gate was sent it twice."""
    receivers: tuple[ReceiverAccount, ...]

    @property
    def taken(self) -> Ids:
        """Return the messages that a receiver took."""
        return _unite([one.taken for one in self.receivers])

    @property
    def refused(self) -> Ids:
        """Return the messages that a receiver refused."""
        return _unite([one.refused for one in self.receivers])

    @property
    def lost(self) -> Ids:
        """Return the messages that were acknowledged, and neither stopped by a fault nor seen to their end."""
        ended = _unite([self.taken, self.refused, self.stopped])
        return np.setdiff1d(self.acknowledged, ended)

    @property
    def phantoms(self) -> Ids:
        """Return the messages that receivers got and nobody had acknowledged."""
        return np.setdiff1d(_unite([self.taken, self.refused]), self.acknowledged)

    @property
    def both(self) -> Ids:
        """Return the messages that were taken and refused, which no message may be."""
        return np.intersect1d(self.taken, self.refused)


def read_receiver(name: str, truth: Truth, kept_ids: Sequence[bytes], deferral_count: int) -> ReceiverAccount:
    """Return the account of a receiver, by its log and by the ids in the records of its topics."""
    taken, refused = truth.ids(name, *TAKEN), truth.ids(name, NodeAction.REJECTED)
    packed = [uuid.UUID(one.decode()).bytes for one in kept_ids]
    return ReceiverAccount(
        name,
        taken,
        refused,
        truth.count(name, *TAKEN) - len(taken),
        truth.count(name, NodeAction.REJECTED) - len(refused),
        np.unique(np.array(packed, dtype="S16")),
        len(packed),
        deferral_count,
    )


def build_account(truth: Truth, receivers: Iterable[ReceiverAccount]) -> ServiceAccount:
    """Return the account of a run."""
    gate, *nodes = [node for node in truth.nodes if node not in truth.receivers]
    actions = (NodeAction.DROPPED, NodeAction.FILTERED, NodeAction.REJECTED)
    stopped = _unite([truth.ids(node, *actions) for node in nodes])
    dropped = _unite([truth.ids(node, NodeAction.DROPPED) for node in nodes])
    last, passing = nodes[-1], (NodeAction.HANDED_ON, NodeAction.REPEATED)
    repeat_count = truth.count(last, *passing) - len(truth.ids(last, *passing))
    return ServiceAccount(truth.ids(gate, NodeAction.HANDED_ON), stopped, dropped, repeat_count, tuple(receivers))


def read_reported(logs: Iterable[Path], stream: str) -> dict[str, int]:
    """Return the sums of what processes of a delivery printed as JSON when they ended; killed ones printed nothing."""
    sums: Counter[str] = Counter()
    for log in logs:
        for block in _JSON_BLOCK.findall(log.read_text("utf-8", "replace")) if log.exists() else ():
            sums.update(json.loads(block)[stream])
    return dict(sums)


def _unite(sets: Sequence[Ids]) -> Ids:
    return np.unique(np.concatenate(sets))
