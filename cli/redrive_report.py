"""Report of a redrive: what was lost, found and sent, and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from hopwatch.cli import console
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.kernel import naming
from hopwatch.monitor.results import format_iso
from hopwatch.probes.contract.batch import WireIdKind

if TYPE_CHECKING:
    from hopwatch.deliver.redrive.messages import RedriveKey
    from hopwatch.deliver.redrive.run import RedriveOutcome
    from hopwatch.monitor.lookup.proven_losses import NodeLosses, ProvenLoss, UnprovenLoss

MAX_SHOWN: Final = 10
"""Messages of a kind that are printed by name; JSON has all."""
_COUNTED: Final = ("found", "sent", "sent_before")
_REPEATED: Final = "repeated"
_UNSENT: Final = {
    "skipped": "not sent, as it was sent again three times before",
    "aged_out": "not sent, as records of its time are gone from the topic",
    "not_found": "not sent, as the topic does not have it",
}
_NAMED: Final = {
    _REPEATED: "sent, and perhaps a second time: a run ended before it was acknowledged",
    **_UNSENT,
}


class RedriveReport:
    """Report that is filled topic by topic."""

    def __init__(self, stream: str, node: str, target: str | None, losses: NodeLosses, *, is_dry_run: bool) -> None:
        """Begin with what is lost; nothing is found yet."""
        self.stream, self.node, self.target, self.losses, self.is_dry_run = stream, node, target, losses, is_dry_run
        self._shown: dict[RedriveKey, ProvenLoss] = {}
        self._topics: list[str] = []
        self._keys: dict[str, list[RedriveKey]] = {name: [] for name in (*_COUNTED, *_NAMED)}
        self._failed: dict[RedriveKey, str] = {}
        self._read, self._unreadable, self.is_stopped = 0, Counter[str](), False
        self.recovered: int | None = None
        """Messages that the state has as sent, and that are missing no more; None in a dry run."""

    def add_topic(self, topic: str, lost: dict[RedriveKey, ProvenLoss], outcome: RedriveOutcome) -> None:
        """Add the outcome of one topic."""
        self._topics.append(topic)
        self._shown |= lost
        for name in (*_COUNTED, *_UNSENT):
            self._keys[name] += getattr(outcome, name)
        self._failed |= outcome.failed
        self._read += outcome.read
        self._unreadable += outcome.unreadable
        self.is_stopped = self.is_stopped or outcome.is_stopped

    def note_repeated(self, repeated: Iterable[RedriveKey]) -> None:
        """Note messages that were sent, and perhaps before that by a run that was killed."""
        self._keys[_REPEATED] = sorted(repeated)

    @property
    def is_whole(self) -> bool:
        """Return whether each message that was asked for was sent, or in a dry run would be."""
        left = self.losses.unproven, self._failed, *(self._keys[name] for name in _UNSENT)
        return not self.is_stopped and not any(left)

    def count_outcomes(self) -> dict[str, int]:
        """Return the counts alone."""
        counts = {name: len(keys) for name, keys in self._keys.items()}
        return {"lost": len(self.losses.proven), **counts, "failed": len(self._failed)}

    def raise_failures(self) -> None:
        """Raise an error if a topic did not take a message.

        Raises:
            TransportError: it did not; it holds the first reason.
        """
        if self._failed:
            why = next(iter(self._failed.values()))
            told = f"{len(self._failed):,} messages were not taken by the topic: {why}"
            raise TransportError(f"{told}: mend it, then start again with the same --state")

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        named = {name: [self._key_to_json(key) for key in self._keys[name]] for name in _NAMED}
        return {
            "stream": self.stream,
            "node": self.node,
            "topics": self._topics,
            "to": self.target,
            "dry_run": self.is_dry_run,
            "stopped": self.is_stopped,
            "lost": len(self.losses.proven),
            **{name: len(self._keys[name]) for name in _COUNTED},
            "recovered": self.recovered,
            **named,
            "failed": [self._key_to_json(key) | {"reason": why} for key, why in self._failed.items()],
            "refused": list(map(_refusal_to_json, self.losses.unproven)),
            "read": self._read,
            "unreadable": dict(self._unreadable),
        }

    def format_lines(self) -> Iterable[str]:
        """Yield the lines for people."""
        for one in self.losses.unproven:
            when = "" if one.window_start_us is None else f"window {format_iso(one.window_start_us)}: "
            who = f"{one.shown} is" if one.shown else f"{one.missing:,} messages are"
            yield f"{when}{who} not sent: {one.reason}"
        for name, told in _NAMED.items():
            yield from self._format_keys(self._keys[name], told)
        if self._unreadable:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self._unreadable.items()))
            count = f"{self._unreadable.total():,} of {self._read:,} records"
            yield f"{count} have no id and event time that can be read: {reasons}"
        counts = self.count_outcomes()
        sent = "nothing is sent by --dry-run" if self.is_dry_run else f"{counts['sent']:,} sent"
        before = f", {counts['sent_before']:,} sent before" if counts["sent_before"] else ""
        where = f"{counts['lost']:,} messages are surely lost at {self.node} of {self.stream}"
        recovered = "" if self.recovered is None else f", {self.recovered:,} recovered"
        yield f"{where}: {counts['found']:,} found, {sent}{before}{recovered}"
        if self.is_stopped:
            yield "stopped before the end: start again with the same --state"

    def _format_keys(self, keys: Collection[RedriveKey], told: str) -> Iterable[str]:
        for key, _ in zip(keys, range(MAX_SHOWN), strict=False):
            yield f"{self._show_id(key)}  {told} (window {format_iso(key.window_start_us)})"
        if len(keys) > MAX_SHOWN:
            yield f"and {len(keys) - MAX_SHOWN:,} more like it, which --json names"

    def _key_to_json(self, key: RedriveKey) -> dict[str, str]:
        return {"id": self._show_id(key), "window_start": format_iso(key.window_start_us)}

    def _show_id(self, key: RedriveKey) -> str:
        """Return an id as it was given; what is recovered meanwhile the store does not name any more."""
        lost = self._shown.get(key)
        return naming.format_id(key.message_id, WireIdKind.UNKNOWN, None) if lost is None else lost.shown


def print_report(report: RedriveReport, *, as_json: bool) -> None:
    """Print a report."""
    if as_json:
        console.emit_json(report.to_json())
        return
    for line in report.format_lines():
        console.stdout().print(line, soft_wrap=True)


def _refusal_to_json(one: UnprovenLoss) -> dict[str, Any]:
    start = None if one.window_start_us is None else format_iso(one.window_start_us)
    return {"id": one.shown or None, "window_start": start, "messages": one.missing, "reason": one.reason}
