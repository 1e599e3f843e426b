"""Likely causes of a loss in words: values of labels, how many of the missing messages have them, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hopwatch.display import texts
from hopwatch.monitor.kernel.causes import MIN_LOST, can_explain
from hopwatch.monitor.results import LabelCounts, LabelValueKind, LossCause
from hopwatch.monitor.texts.escaping import escape_line


def describe_causes(node: str, loss: int, causes: Sequence[LossCause], rows: Sequence[LabelCounts]) -> list[str]:
    """Return a sentence for each likely cause of what is missing at a node, or that no label explains it.

    Nothing is said where no label tells messages apart, or where fewer than MIN_LOST are missing.
    """
    if not causes:
        is_unexplained = loss >= MIN_LOST and can_explain(rows)
        return [f"no label explains the {loss:,} missing at {node}"] if is_unexplained else []
    sentences = []
    for rank, alike in groupby(causes, lambda cause: cause.rank):
        own = list(alike)
        first = own[0]
        with_it, without = (
            texts.format_percent(*counts)
            for counts in ((first.lost, first.messages), (first.other_lost, first.other_messages))
        )
        word = "likely cause" if rank == 1 else "further cause"
        sentences.append(
            f"{word} at {node}: {_name_values(node, own)}, with {_describe_share(first)} missing; "
            f"of its messages {with_it} are missing, of all others {without}"
        )
    return sentences


def summarize_causes(node: str, causes: Sequence[LossCause]) -> str:
    """Return the likeliest cause of what is missing at a node in a few words, for an alert; empty if there is none."""
    own = [cause for cause in causes if cause.rank == 1]
    return f"{_describe_share(own[0])} missing have {_name_values(node, own)}" if own else ""


def _describe_share(cause: LossCause) -> str:
    return texts.format_share(cause.lost, cause.lost + cause.other_lost)


def _name_values(node: str, causes: Sequence[LossCause]) -> str:
    return " · ".join(_name_value(node, cause) for cause in causes)


def _name_value(node: str, cause: LossCause) -> str:
    value = escape_line(cause.value) if cause.kind is LabelValueKind.VALUE else "(no value)"
    where = "" if cause.said_at == node else f" at {cause.said_at}"
    return f"{escape_line(cause.label)} {value}{' (new)' if cause.is_new else ''}{where}"
