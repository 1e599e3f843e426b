"""Answer to a contract as programs and people get it: the decision, and the probes and holes behind it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.missing_accounts import MissingAccount
from hopwatch.monitor.kernel.completeness import BlockedSpan, Completeness, CompletenessContract, Obstacle
from hopwatch.monitor.results import format_iso
from hopwatch.probes.contract.limits import WINDOW_US

Json = dict[str, Any]

MAX_REASONS: Final = 5
"""Most reasons of the windows of one obstacle that are told."""

_WORDS: Final = {
    Obstacle.NOT_REPORTED: "no probe has reported of this or a later time",
    Obstacle.NOT_JUDGED: "not final yet",
    Obstacle.IN_FLIGHT: "{messages:,} messages are in flight",
    Obstacle.UNKNOWN: "how many may be lost is unknown",
    Obstacle.LOST: "{messages:,} messages are surely lost, more than lost_below allows",
    Obstacle.MAYBE_LOST: "{messages:,} messages may be lost, more than the contract allows",
    Obstacle.NOT_KEPT: "the store has no such windows: they were pruned, or the stream began later",
}


@dataclass(frozen=True, slots=True)
class CompletenessAnswer:
    """Decision on a contract, how far the transport was read (0 if not at all), and the causes that have a name."""

    decision: Completeness
    read_through_us: int
    accounts: Sequence[MissingAccount] = ()
    holes: Sequence[Hole] = ()


def answer_to_json(name: str, contract: CompletenessContract, nodes: Sequence[str], answer: CompletenessAnswer) -> Json:
    """Return an answer as the API and ``hopwatch ready --json`` show it; ``nodes`` are those that the file names."""
    found = answer.decision
    return {
        "contract": name,
        "stream": contract.stream,
        "nodes": list(nodes),
        "state": found.state.value,
        "from": format_iso(found.from_us),
        "until": format_iso(found.until_us),
        "known": found.known,
        "lost_lower": found.lost_lower,
        "lost_upper": found.lost_upper,
        "in_flight": found.in_flight,
        "revisions": found.revisions,
        "earliest": _format(found.earliest_us),
        "amendable_until": format_iso(found.amendable_until_us),
        "read_through": _format(answer.read_through_us or None),
        "blocked": [_span_to_json(one) for one in found.blocked],
        "probes": [_account_to_json(one) for one in answer.accounts],
        "holes": [_hole_to_json(one) for one in answer.holes],
    }


def describe_span(one: BlockedSpan) -> str:
    """Describe in one line what an obstacle is, of which windows, since when, and when it can go at the earliest."""
    told = f"{format_iso(one.from_us)} to {format_iso(one.to_us)}: {_WORDS[one.obstacle].format(messages=one.messages)}"
    told += f", since {format_iso(one.since_us)}"
    if one.is_lasting:
        return f"{told}; nothing but an amendment changes it"
    return told if one.earliest_us is None else f"{told}; {format_iso(one.earliest_us)} at the earliest"


def describe_account(one: MissingAccount) -> str:
    """Describe in one line what is missing of a probe instance's account."""
    told = f"probe {one.probe} of {one.node} has reported everything up to {format_iso(one.since_us)}"
    missing = f", and {one.missing_batches:,} of its batches never came" if one.missing_batches else ""
    return told + missing + (f", and it dropped {one.dropped:,} observations" if one.dropped else "")


def describe_hole(one: Hole) -> str:
    """Describe in one line a hole of the transport."""
    return f"records {one.first} to {one.last} of partition {one.place} had aged out before they were read"


def _span_to_json(one: BlockedSpan) -> Json:
    return {
        "obstacle": one.obstacle.value,
        "from": format_iso(one.from_us),
        "to": format_iso(one.to_us),
        "windows": (one.to_us - one.from_us) // WINDOW_US,
        "since": format_iso(one.since_us),
        "earliest": _format(one.earliest_us),
        "amendable_until": format_iso(one.amendable_until_us),
        "is_lasting": one.is_lasting,
        "messages": one.messages,
        "reasons": list(one.reasons[:MAX_REASONS]),
        "text": describe_span(one),
    }


def _account_to_json(one: MissingAccount) -> Json:
    told = {"node": one.node, "probe": one.probe, "epoch": format_iso(one.epoch_us)}
    counts = {"missing_batches": one.missing_batches, "dropped": one.dropped, "windows": one.windows}
    return told | {"reported_through": format_iso(one.since_us)} | counts | {"text": describe_account(one)}


def _hole_to_json(one: Hole) -> Json:
    told = {"partition": one.place, "from_offset": one.first, "to_offset": one.last}
    return told | {"after": format_iso(one.after_us), "before": format_iso(one.before_us), "text": describe_hole(one)}


def _format(moment_us: int | None) -> str | None:
    return None if moment_us is None else format_iso(moment_us)
