"""Likely causes of a loss or of lag in words: values of labels, how many of its messages have them, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

from hopwatch.display import texts
from hopwatch.monitor.kernel.causes import MIN_LOST, can_explain
from hopwatch.monitor.results import LabelCounts, LabelValueKind, LagCause, LossCause
from hopwatch.monitor.texts.escaping import escape_line

AnyCause = TypeVar("AnyCause", LossCause, LagCause)


def describe_causes(node: str, loss: int, causes: Sequence[LossCause], rows: Sequence[LabelCounts]) -> list[str]:
    """Return a sentence for each likely cause of what is missing at a node, or that no label explains it.

    Nothing is said where no label tells messages apart, or where fewer than MIN_LOST are missing.
    """
    if not causes:
        is_unexplained = loss >= MIN_LOST and can_explain(rows)
        return [f"no label explains the {loss:,} missing at {node}"] if is_unexplained else []
    return _describe_ranks(f"cause at {node}", causes, lambda own: _describe_cause(node, own))


def summarize_causes(node: str, causes: Sequence[LossCause]) -> str:
    """Return the likeliest cause of what is missing at a node in a few words, for an alert; empty if there is none."""
    own = [cause for cause in causes if cause.rank == 1]
    return f"{_describe_share(own[0])} missing have {_name_values(node, own)}" if own else ""


def describe_lag_causes(node: str, causes: Sequence[LagCause]) -> list[str]:
    """Return a sentence for each likely cause of the greatest lags of a node; empty where none is known."""
    return _describe_ranks(f"cause of lag at {node}", causes, _describe_lag_cause)


def summarize_lag_causes(causes: Sequence[LagCause]) -> str:
    """Return the likeliest cause of the greatest lags of a node in a few words, for an alert; empty if not known."""
    own = [cause for cause in causes if cause.rank == 1]
    return f"{_describe_slow_share(own[0])} have {_name_lag_values(own)}" if own else ""


def _describe_ranks(word: str, causes: Sequence[AnyCause], describe: Callable[[Sequence[AnyCause]], str]) -> list[str]:
    """Return a sentence for the values of each rank, which are one cause."""
    ranks = [(rank, list(own)) for rank, own in groupby(causes, lambda cause: cause.rank)]
    return [f"{'likely' if rank == 1 else 'further'} {word}: {describe(own)}" for rank, own in ranks]


def _describe_cause(node: str, own: Sequence[LossCause]) -> str:
    first = own[0]
    with_it = texts.format_percent(first.lost, first.messages)
    without = texts.format_percent(first.other_lost, first.other_messages)
    return (
        f"{_name_values(node, own)}, with {_describe_share(first)} missing; "
        f"of its messages {with_it} are missing, of all others {without}"
    )


def _describe_lag_cause(own: Sequence[LagCause]) -> str:
    first = own[0]
    with_it = texts.format_percent(first.slow, first.departures)
    without = texts.format_percent(first.other_slow, first.other_departures)
    return (
        f"{_name_lag_values(own)}, with {_describe_slow_share(first)}; "
        f"of its departures {with_it} are so slow, of all others {without}"
    )


def _describe_slow_share(cause: LagCause) -> str:
    return f"{texts.format_share(cause.slow, cause.slow + cause.other_slow)} slowest departures"


def _name_lag_values(causes: Sequence[LagCause]) -> str:
    return " · ".join(_format_value(cause.label, cause.kind, cause.value, is_new=cause.is_new) for cause in causes)


def _describe_share(cause: LossCause) -> str:
    return texts.format_share(cause.lost, cause.lost + cause.other_lost)


def _name_values(node: str, causes: Sequence[LossCause]) -> str:
    return " · ".join(_name_value(node, cause) for cause in causes)


def _name_value(node: str, cause: LossCause) -> str:
    where = "" if cause.said_at == node else f" at {cause.said_at}"
    return _format_value(cause.label, cause.kind, cause.value, is_new=cause.is_new) + where


def _format_value(label: str, kind: LabelValueKind, value: str, *, is_new: bool) -> str:
    told = escape_line(value) if kind is LabelValueKind.VALUE else "(no value)"
    return f"{escape_line(label)} {told}{' (new)' if is_new else ''}"
