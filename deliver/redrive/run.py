"""Redrive of one topic: lost messages are found in it, and sent again, unless that was done, or too often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hopwatch.deliver.redrive.messages import MAX_REDRIVES, RedriveKey
from hopwatch.deliver.redrive.sender import RedrivenRecord
from hopwatch.deliver.redrive.topic_search import RecordPlace, TopicSearchResult
from hopwatch.gate.retry import StoppedError

if TYPE_CHECKING:
    from hopwatch.deliver.redrive.sender import RedriveSender
    from hopwatch.deliver.redrive.state import RedriveState
    from hopwatch.deliver.redrive.topic_search import TopicSearch


class SendingTerms(NamedTuple):
    """Terms of sending: the sender, its state, the rate in messages a second; ``advance`` hears of those sent."""

    sender: RedriveSender
    state: RedriveState
    rate_per_s: float
    advance: Callable[[int], object]


@dataclass(slots=True)
class RedriveOutcome:
    """Outcome of a redrive: each wanted message is in ``found``, ``aged_out`` or ``not_found``, unless it was stopped.

    Of the found ones some are ``skipped``, as they were sent again too often, or ``sent_before``, by an earlier run
    with the same state. ``failed`` has the reasons.
    """

    read: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    found: list[RedriveKey] = field(default_factory=list)
    skipped: list[RedriveKey] = field(default_factory=list)
    sent_before: list[RedriveKey] = field(default_factory=list)
    sent: list[RedriveKey] = field(default_factory=list)
    failed: dict[RedriveKey, str] = field(default_factory=dict)
    aged_out: list[RedriveKey] = field(default_factory=list)
    not_found: list[RedriveKey] = field(default_factory=list)
    is_stopped: bool = False


def redrive_messages(
    search: TopicSearch,
    wanted: Collection[RedriveKey],
    margin_us: int,
    sending: SendingTerms | None,
    outcome: RedriveOutcome,
) -> None:
    """Find messages in a topic, and send them again; without terms of sending they are only found.

    Their records are looked for from ``margin_us`` before their windows on. The outcome says what was done before an
    error, too.

    Raises:
        TapSourceError: the topic cannot be read or written, or the state cannot be written.
    """
    outcome.is_stopped = True
    try:
        result = search.find_messages(wanted, min(key.window_start_us for key in wanted) - margin_us)
        _sort_wanted(sorted(wanted), result, sending.state if sending else None, outcome)
        if sending is not None:
            _send_found(search, result, sending, outcome)
        outcome.is_stopped = sending is not None and sending.sender.is_stopped
    except StoppedError:
        return


def _sort_wanted(
    wanted: list[RedriveKey], result: TopicSearchResult, state: RedriveState | None, outcome: RedriveOutcome
) -> None:
    outcome.read, outcome.unreadable = result.read, result.unreadable
    for key in wanted:
        if key not in result.places:
            is_gone = key.window_start_us < result.gone_before_us
            (outcome.aged_out if is_gone else outcome.not_found).append(key)
            continue
        outcome.found.append(key)
        if state is not None and key in state.sent:
            outcome.sent_before.append(key)
        elif result.redrives.get(key.message_id, 0) >= MAX_REDRIVES:
            outcome.skipped.append(key)


def _send_found(search: TopicSearch, result: TopicSearchResult, sending: SendingTerms, outcome: RedriveOutcome) -> None:
    left_out = {*outcome.skipped, *outcome.sent_before}
    due = {result.places[key]: key for key in outcome.found if key not in left_out}
    sender = sending.sender
    try:
        sender.send_records(_read_records(search, due, result), sending.rate_per_s, sending.advance)
    finally:
        outcome.sent, outcome.failed = sorted(sender.sent), dict(sender.failed)
    if not sender.is_stopped:
        # They were there when they were found.
        gone = set(due.values()) - {*outcome.sent, *outcome.failed}
        outcome.aged_out = sorted({*outcome.aged_out, *gone})
        outcome.found = [key for key in outcome.found if key not in gone]


def _read_records(
    search: TopicSearch, due: dict[RecordPlace, RedriveKey], result: TopicSearchResult
) -> Iterator[RedrivenRecord]:
    for message in search.read_records(due):
        key = due[RecordPlace(message.partition() or 0, message.offset() or 0)]
        yield RedrivenRecord(key, result.redrives.get(key.message_id, 0) + 1, message)
