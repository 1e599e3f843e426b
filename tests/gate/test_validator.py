"""Tests of the account of a validator, whose topic and transactions are in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import validator as of_validator
from hopwatch.gate.retry import StoppedError
from hopwatch.gate.transactions import OutputRecord, RecordTimeError
from hopwatch.gate.validator import Validator, ValidatorCounts
from hopwatch.probes.metrics.account import EventOutcome, Output, RefusalReason
from hopwatch.probes.taps.context import RunContext

BATCHES = st.lists(st.tuples(st.lists(st.booleans(), max_size=4), st.sampled_from(["written", "aborted", "stopped"])))


class Topics:
    """Topic whose messages are whether they may enter, and a writer whose transactions end as they are told to."""

    def __init__(self) -> None:
        """Begin with nothing to read."""
        self.messages: list[bool] = []
        self.end = "written"

    def poll(self, _: int) -> list[bool]:
        """Return the batch."""
        return self.messages

    def read_history(self, _: list[bool]) -> list[bool]:
        """Return nothing: there are no unique values."""
        return []

    def find_next_offsets(self, messages: list[bool]) -> list[Any]:
        """Return the offset after the batch."""
        return [SimpleNamespace(partition=0, offset=len(messages))]

    def group_metadata(self) -> None:
        """Return no group."""

    def rewind(self) -> dict[int, int]:
        """Return that nothing is committed."""
        return {}

    def mark_done(self, _: object) -> None:
        """Keep no progress."""

    def write(self, *_: object) -> bool:
        """End the transaction."""
        if self.end == "stopped":
            raise StoppedError
        return self.end == "written"


def run(validator: Validator, topics: Topics, messages: list[bool], end: str) -> None:
    """Run one step over a batch."""
    topics.messages, topics.end = messages, end
    if end == "stopped" and messages:
        with pytest.raises(StoppedError):
            validator.step()
    else:
        validator.step()


@given(BATCHES)
def test_the_account_of_a_validator_balances(batches: list[tuple[list[bool], str]]) -> None:
    """Of transactions that are committed, aborted, and given up: the counts for people are of the committed ones."""
    topics = Topics()
    stamping = SimpleNamespace(stamp_entered=lambda *_: None, stamp_rejected=lambda *_: None)
    checked = cast("Any", SimpleNamespace(event_id=b"", event_us=0, is_stale=False, reason="odd", schema=""))
    parts = [cast("Any", one) for one in (topics, None, topics, stamping)]
    validator = Validator(*parts[:3], stamping=parts[3], around=RunContext(print))
    record = of_validator._CheckedRecord
    check = cast("Any", lambda message, _: record(checked, message, cast("Any", None)))
    validator._check_message = check  # type: ignore[method-assign]
    for messages, end in batches:
        run(validator, topics, messages, end)
    account = validator.account.snapshot()
    ended = {end: [one for messages, of in batches if of == end for one in messages] for _, end in batches}
    written = ended.get("written", [])
    assert (account.received, account.in_flight) == (sum(len(messages) for messages, _ in batches), 0)
    assert account.total(EventOutcome.EMITTED, Output.STREAM) == sum(written)
    assert account.total(EventOutcome.EMITTED, Output.QUARANTINE) == len(written) - sum(written)
    assert account.total(EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN) == len(ended.get("aborted", []))
    assert account.total(EventOutcome.REFUSED, RefusalReason.INTERRUPTED) == len(ended.get("stopped", []))
    assert validator.counts == ValidatorCounts(len(written), sum(written), len(written) - sum(written))


class Timed(Topics):
    """Topic of eight records, and a writer that does not take the time of one of them."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        super().__init__()
        self.done, self.written = 0, list[tuple[int, int]]()

    def poll(self, most: int) -> list[Any]:
        """Return what was not written yet."""
        return list(range(self.done, 8))[:most]

    def write(self, outs: list[OutputRecord], *_: object) -> bool:  # type: ignore[override]
        """Write all of it or nothing."""
        if any(one.recorded_ms == ODD_MS for one in outs):
            raise RecordTimeError
        self.written += [(int(one.value), one.recorded_ms) for one in outs]
        self.done += len(outs)
        return True


ODD_MS = 2**62


@pytest.mark.parametrize("odd", range(8))
def test_a_record_whose_time_no_topic_takes_is_written_without_it(odd: int) -> None:
    """Those beside it keep their times, and each is written once; the validator was blocked for good before."""
    topics = Timed()
    stamping = SimpleNamespace(stamp_entered=lambda *_: None, stamp_rejected=lambda *_: None)
    parts = [cast("Any", one) for one in (topics, None, topics)]
    validator = Validator(*parts, stamping=cast("Any", stamping), around=RunContext(print))
    event = cast("Any", SimpleNamespace(event_id=b"", event_us=0, schema=""))

    def check(number: int, _: int) -> object:
        out = OutputRecord("good", b"%d" % number, None, [], ODD_MS if number == odd else 7)
        return of_validator._CheckedRecord(event, may_enter=True, output=out)

    validator._check_message = cast("Any", check)  # type: ignore[method-assign]
    validator._max_records = 8
    for _ in range(20):
        validator.step()
    assert topics.written == [(number, 0 if number == odd else 7) for number in range(8)]
    assert validator.counts == ValidatorCounts(8, 8, 0)
