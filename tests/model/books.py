"""Books: who stamped, who has a say in a window, and whose account of it has no hole.

All moments are µs since 1970. An interval here includes both its ends, and one whose end is before its start is empty.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.model.wire import Received

Interval = tuple[int, int]
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
DAY_US = 24 * 60 * MINUTE_US
LIVES_ON_US = 10 * SECOND_US
RETIRES_AFTER_US = 600 * SECOND_US


def meet(one: Interval, other: Interval) -> bool:
    """Say whether two closed intervals have a moment in common."""
    return max(one[0], other[0]) <= min(one[1], other[1])


@dataclass(frozen=True, slots=True)
class Window:
    """A window that is judged: its start, its end, and its horizon."""

    start_us: int
    end_us: int
    horizon_us: int

    @property
    def start_ms(self) -> int:
        """The start as the wire writes it."""
        return self.start_us // 1000

    @property
    def minute(self) -> Interval:
        """[start, end): the last whole µs before the end is in it."""
        return self.start_us, self.end_us - 1

    @property
    def judged(self) -> Interval:
        """[start, horizon]."""
        return self.start_us, self.horizon_us


class Instance:
    """One running probe: what came of it, duplicates set aside."""

    def __init__(
        self,
        node: str,
        sent: Sequence[Received],
        touched: frozenset[int],
        late: frozenset[int],
        implausible: Sequence[Received],
    ) -> None:
        """Open its book; `touched` and `late` are the windows (start, ms) that it told of, and told of too late."""
        self.node = node
        self.sent = sorted(sent, key=lambda one: one.batch.seq)
        self.touched = touched | late
        self.late = late
        self.implausible = implausible
        self.unread_us = min((one.arrival_us for one in sent), default=0)

    @property
    def epoch_us(self) -> int:
        """Its start, no later than the arrival of any of its batches."""
        return min(min(one.batch.epoch_us, one.arrival_us) for one in self.sent)

    @property
    def last_arrival_us(self) -> int:
        """Return when its last batch came, readable or not."""
        return max(self.unread_us, *(one.arrival_us for one in self.sent))

    def complete_through_us(self, one: Received) -> int:
        """Give what a batch of it completes, no later than the arrival of that batch."""
        return min(one.batch.complete_through_us, one.arrival_us)

    @property
    def last_complete_through_us(self) -> int:
        """Return the moment that the batch with the highest number completes."""
        return self.complete_through_us(self.sent[-1])

    @property
    def said_bye(self) -> bool:
        """Return whether the batch with the highest number is a bye."""
        return self.sent[-1].batch.kind == "BYE"

    @property
    def life(self) -> Interval:
        """From its epoch to its last `complete_through`, 10 s more without a bye."""
        return self.epoch_us, self.last_complete_through_us + (0 if self.said_bye else LIVES_ON_US)

    @property
    def may_hold_stamps(self) -> Interval:
        """Return the time in which it may have made stamps that it never reported; empty after a bye."""
        silent_us = max(self.epoch_us, self.last_complete_through_us)
        if self.said_bye:
            return silent_us, silent_us - 1
        return silent_us, max(silent_us, self.last_arrival_us) + RETIRES_AFTER_US

    @property
    def holes(self) -> list[Interval]:
        """The spans in which its missing batches were made: from what one completes until the next was sent."""
        spans = []
        number, moment = -1, self.epoch_us
        for one in self.sent:
            here = self.complete_through_us(one)
            # Of the batches of one flush only the last may carry the new moment.
            sent_us = max(here, min(one.batch.sent_at_us, one.arrival_us))
            if one.batch.seq > number + 1:
                spans.append((min(moment, sent_us), max(moment, sent_us)))
            number, moment = one.batch.seq, here
        return spans

    def dropped(self, window: Window) -> int:
        """Count the observations of the window that it says it dropped."""
        return sum(count for one in self.sent for start_ms, count in one.batch.drops if start_ms == window.start_ms)

    def aside(self, window: Window) -> int:
        """Count its implausible observations in batches that were stamped while the window was judged."""
        return sum(
            one.batch.messages
            for minute in _minutes_of_stamping(self.implausible)
            for one in minute
            if meet((min(map(_stamped_from_us, minute)), max(other.arrival_us for other in minute)), window.judged)
        )

    def heard(self, window: Window) -> bool:
        """Return whether it sent observations of the window, or its life meets [start, end)."""
        return window.start_ms in self.touched or meet(self.life, window.minute)

    def has_a_say(self, window: Window) -> bool:
        """Return whether it is heard, reported a drop, or lived or may hold stamps within [start, horizon]."""
        return (
            self.heard(window)
            or self.dropped(window) > 0
            or meet(self.life, window.judged)
            or meet(self.may_hold_stamps, window.judged)
        )

    def told(self, window: Window) -> bool:
        """Return whether it reported up to the horizon, and misses or sent late no batch that may be of the window."""
        reported = self.said_bye or self.last_complete_through_us >= window.horizon_us
        return (
            reported and not any(meet(hole, window.judged) for hole in self.holes) and window.start_ms not in self.late
        )

    def complete(self, window: Window) -> bool:
        """Its account is told, and nothing was dropped."""
        return self.told(window) and self.dropped(window) == 0


def _stamped_from_us(one: Received) -> int:
    """Give the earliest stamp in a batch, no later than its arrival; without any, the epoch."""
    stamps_us = [
        one.window_us + seen.event_offset_us + lag_us
        for seen in one.batch.observations
        for lag_us in (seen.lag_in_us, seen.lag_out_us)
        if lag_us is not None
    ]
    return min(one.arrival_us, *(stamps_us or [one.batch.epoch_us]))


def _minutes_of_stamping(batches: Sequence[Received]) -> list[list[Received]]:
    """Bring together the batches whose stamping began in one minute; at most a day before they came, for this."""
    found: dict[int, list[Received]] = defaultdict(list)
    for one in (batch for batch in batches if batch.batch.messages):
        found[max(_stamped_from_us(one), one.arrival_us - DAY_US) // MINUTE_US].append(one)
    return list(found.values())


class Unheard:
    """An instance of which no record could be read, known by its folder: when that was written first and last."""

    def __init__(self, node: str, epoch_us: int, first_us: int, last_us: int) -> None:
        """Begin at its epoch, or when its folder was first written, if that was earlier."""
        self.node = node
        self.since_us = min(epoch_us, first_us)
        self.last_us = last_us

    def heard(self, _window: Window) -> bool:
        """Nobody heard of it."""
        return False

    def has_a_say(self, window: Window) -> bool:
        """Return whether it may hold stamps of the window: from its epoch on until it is retired."""
        return meet((self.since_us, max(self.since_us, self.last_us) + RETIRES_AFTER_US), window.judged)

    def told(self, _window: Window) -> bool:
        """Return False: it has reported nothing."""
        return False

    complete = told

    def dropped(self, _window: Window) -> int:
        """Nobody knows of a drop."""
        return 0

    aside = dropped


@dataclass(frozen=True, slots=True)
class NodeBooks:
    """Books of a node's instances on a window."""

    complete: bool
    bounded: bool
    heard: bool
    dropped: int
    missing: int
    """Dropped, and implausible."""
    coverage: float | None


def node_books(instances: Sequence[Instance | Unheard], window: Window, *, is_touched: bool) -> NodeBooks:
    """Judge the books of the node of these instances; `is_touched` says that a record of anybody's is missing."""
    with_a_say = [one for one in instances if one.has_a_say(window)]
    heard = any(one.heard(window) for one in instances)
    complete = sum(one.complete(window) for one in with_a_say)
    count = len(with_a_say) + is_touched
    dropped = sum(one.dropped(window) for one in instances)
    return NodeBooks(
        complete=heard and complete == count,
        bounded=heard and not is_touched and all(one.told(window) for one in with_a_say),
        heard=heard,
        dropped=dropped,
        missing=dropped + sum(one.aside(window) for one in instances),
        coverage=complete / count if count else None,
    )
