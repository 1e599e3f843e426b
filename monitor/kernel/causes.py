"""Likely causes of a loss, or of lag: values of labels that missing or slow messages have more often than all others.

Each value is tested against the share that it would have if it made no difference, window by window, so that a value
that came with other traffic is no cause of what was lost then. SEMANTICS.md, "Likely causes" and "Likely causes of
lag", define all of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from typing import Final

from hopwatch.monitor.results import LabelCounts, LabelValueKind, LagCause, LossCause

MAX_PROBABILITY: Final = 0.001
"""Probability, over all values together, with which chance alone names a cause; at most."""
MIN_ALIKE: Final = 0.9
"""Part of a cause's missing messages that another value must have to be named beside it."""
MIN_LOST: Final = 10
"""Missing messages of which it is said that no label explains them."""
MIN_TIMES: Final = 2
"""How many times as often as all others, at least, the messages of a cause of lag are slow."""
MAX_CAUSES: Final = 3
"""Causes of a loss or of lag that are named, the likeliest first."""
MAX_ALIKE: Final = 4
"""Values of labels that are named as one cause."""

_Value = tuple[str, str, LabelValueKind, str]
"""Label, the node that says it, and the kind and value of a row."""


@dataclass(slots=True)
class _Split:
    """Messages of a node that have a value, or have not, over some windows; bad are those that are lost, or slow.

    ``expected_bad`` is how many with the value would be bad if it made no difference, ``dispersion`` how much more
    their number varies than by chance.
    """

    bad: int = 0
    messages: int = 0
    other_bad: int = 0
    other_messages: int = 0
    expected_bad: float = 0.0
    is_new: bool = False
    dispersion: float = 1.0


def rank_causes(windows: Sequence[Sequence[LabelCounts]]) -> tuple[LossCause, ...]:
    """Return the likely causes of what is missing at a node, the likeliest first; empty where no label explains it.

    Each of ``windows`` has the rows by label of the node in one final window. Values that are named as one cause have
    the same ``rank``, which counts from 1.
    """
    if not any(row.loss for rows in windows for row in rows):
        return ()
    return tuple(
        LossCause(rank, *value, split.bad, split.messages, split.other_bad, split.other_messages, is_new=split.is_new)
        for rank, value, split in _rank_values(*_split_windows(windows))
    )


def rank_lag_causes(rows: Iterable[LabelCounts]) -> tuple[LagCause, ...]:
    """Return the likely causes of the greatest lags of a node in a window, the likeliest first; empty if none is known.

    ``rows`` are those by label of the node. Values that are named as one cause have the same ``rank``, from 1.
    """
    splits: dict[_Value, _Split] = {}
    tests = 0
    for (label, said_at), of_label in groupby(rows, _name_label):
        own = list(of_label)
        slow, departures = sum(row.slow or 0 for row in own), sum(row.departures or 0 for row in own)
        for row in own if slow else ():
            if row.kind is LabelValueKind.OTHER:
                tests += row.departures or 0
            elif row.departures and row.slow is not None and row.slow_dispersion is not None:
                tests += 1
                others = slow - row.slow, departures - row.departures
                if row.slow * others[1] >= MIN_TIMES * others[0] * row.departures:
                    counts = (row.slow, row.departures, *others, slow * row.departures / departures)
                    splits[label, said_at, row.kind, row.value] = _Split(*counts, row.is_new, row.slow_dispersion)
    return tuple(
        LagCause(
            rank, label, kind, value, split.bad, split.messages, split.other_bad, split.other_messages,
            is_new=split.is_new,
        )
        for rank, (label, _, kind, value), split in _rank_values(splits, tests)
    )  # fmt: skip


def _rank_values(splits: Mapping[_Value, _Split], tests: int) -> Iterator[tuple[int, _Value, _Split]]:
    """Yield the values that are likely causes, of so many that may be, each with the rank of its cause."""
    bound = 2 * log(max(1, tests) / MAX_PROBABILITY)
    tested = [(_likelihood_ratio(split) / split.dispersion, value, split) for value, split in splits.items()]
    found = [one for one in tested if one[0] > bound]
    # Of equal ones the first by name.
    found.sort(key=lambda one: (-one[0], one[1]))
    causes: list[list[tuple[_Value, _Split]]] = []
    for _, value, split in found:
        rank = next((rank for rank, own in enumerate(causes) if _is_of_cause(own, value, split)), len(causes))
        if rank == MAX_CAUSES:
            break
        if rank == len(causes):
            causes.append([])
        elif len(causes[rank]) == MAX_ALIKE or _bad_share(split) < MIN_ALIKE * _bad_share(causes[rank][0][1]):
            continue
        causes[rank].append((value, split))
    for rank, own in enumerate(causes, 1):
        for value, split in own:
            yield rank, value, split


def can_explain(rows: Iterable[LabelCounts]) -> bool:
    """Return whether the rows of a node can tell messages apart: of some label there are several values."""
    return any(len(list(of_label)) > 1 for _, of_label in groupby(rows, _name_label))


def _split_windows(windows: Sequence[Sequence[LabelCounts]]) -> tuple[dict[_Value, _Split], int]:
    """Add up the rows of each value over windows; return how many values there may be, too.

    Values that have no rows of their own are at most as many as their messages.
    """
    splits: defaultdict[_Value, _Split] = defaultdict(_Split)
    unnamed = 0
    all_lost: Counter[tuple[str, str]] = Counter()
    all_messages: Counter[tuple[str, str]] = Counter()
    for rows in windows:
        # Rows are in order of label and source.
        for name, of_label in groupby(rows, _name_label):
            own = list(of_label)
            lost, messages = sum(row.loss for row in own), sum(map(_count_settled, own))
            all_lost[name] += lost
            all_messages[name] += messages
            for row in own:
                if row.kind is LabelValueKind.OTHER:
                    unnamed += _count_settled(row)
                else:
                    split, settled = splits[*name, row.kind, row.value], _count_settled(row)
                    split.bad += row.loss
                    split.messages += settled
                    split.expected_bad += lost * settled / max(1, messages)
                    split.is_new |= row.is_new
    for (label, said_at, *_), split in splits.items():
        split.other_bad = all_lost[label, said_at] - split.bad
        split.other_messages = all_messages[label, said_at] - split.messages
    return splits, len(splits) + unnamed


def _name_label(row: LabelCounts) -> tuple[str, str]:
    return row.label, row.said_at


def _count_settled(row: LabelCounts) -> int:
    return row.expected_or_seen - row.in_flight


def _bad_share(split: _Split) -> float:
    return split.bad / max(1, split.bad + split.other_bad)


def _likelihood_ratio(split: _Split) -> float:
    """Return twice the log-likelihood ratio of the share that a value has of the bad messages; 0 where it has less.

    By Hoeffding (1963, theorems 1 and 4) chance gives a value so many or more with a probability of at most
    exp(-ratio / 2), for draws without replacement, too.
    """
    share, expected = _bad_share(split), split.expected_bad / max(1, split.bad + split.other_bad)
    if share <= expected:
        return 0.0
    ratio = split.bad * log(share / expected)
    if split.other_bad:
        ratio += split.other_bad * log((1 - share) / (1 - expected))
    return max(0.0, 2 * ratio)


def _is_of_cause(own: Sequence[tuple[_Value, _Split]], value: _Value, split: _Split) -> bool:
    """Return whether a value has, or may have, the bad messages of a cause that is found already.

    Two values of which one has a and one b of all that is bad have at least a + b - 1 in common, and that is at
    least half of the fewer. Values of two labels with nearly the same counts are not told apart.
    """
    head_value, head = own[0]
    share, of_head = _bad_share(split), _bad_share(head)
    if share + of_head - 1 >= min(share, of_head) / 2:
        return True
    pairs = ((split.bad, head.bad), (split.messages, head.messages))
    return value[:2] != head_value[:2] and all(min(pair) >= MIN_ALIKE * max(pair) for pair in pairs)
