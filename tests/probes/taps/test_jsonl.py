"""Tests of the tap of JSON lines: what it stamps, what it counts, what it keeps, and when it waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.batch import WireIdKind as WireKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.documents import DocumentReader
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.jsonl import POLL_S, READ_BYTES, JsonLinesTap, Pipe, open_followed_file
from hopwatch.probes.taps.lines import MAX_LINE_BYTES
from hopwatch.probes.taps.marked_file import Position
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.stamper import MAX_UNSETTLED
from hopwatch.probes.taps.state import StateFile
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit
from hopwatch.testing import EPOCH_US, Observation
from tests.support.drops import drops
from tests.support.tap_bench import Place

READER = DocumentReader("id", "at", IdFormat.AUTO, TimeUnit.US)


def line(number: int) -> bytes:
    """Return a good line."""
    return b'{"id": %d, "at": %d}\n' % (number, EPOCH_US)


class Parts:
    """A source that brings one part a read, and is over then."""

    is_behind = has_ended = False

    def __init__(self, parts: list[bytes], slow_at: Place | None = None) -> None:
        """Take the parts, and the place where each of them takes a second."""
        self._parts, self._slow_at = [*parts], slow_at

    def read(self, most_bytes: int) -> bytes:
        """Return the next part."""
        if self._slow_at:
            self._slow_at.clock.advance(1)
        data = self._parts.pop(0) if self._parts else b""
        assert len(data) <= most_bytes
        self.has_ended = self.is_over
        return data

    def position(self, unread_bytes: int) -> Position | None:
        """Return nothing: nobody can go back."""

    @property
    def is_over(self) -> bool:
        """Return whether the last part was read."""
        return not self._parts


@pytest.mark.parametrize(("side", "moments"), [(StampSide.IN, (EPOCH_US, None)), (StampSide.OUT, (None, EPOCH_US))])
def test_lines_are_stamped_on_the_side_that_is_asked_for(
    side: StampSide, moments: tuple[int | None, int | None]
) -> None:
    """A line is stamped as arrived or departed, as asked for, when it is read."""
    place = Place(side)
    JsonLinesTap(Parts([line(7)]), READER, place.stamping, place.around).run()
    assert place.said() == [Observation(id_bytes(7), EPOCH_US, *moments)]


def test_ids_go_on_as_they_stand_in_the_lines() -> None:
    """A batch a kind, with the texts of those that are texts."""
    place = Place(StampSide.IN)
    ids = ("7", '"order 1"', '"0190e5a3-1c00-7000-8000-00000000000a"', '"gr\u00f6\u00dfe"')
    lines = [f'{{"id": {one}, "at": {EPOCH_US}}}\n'.encode() for one in ids]
    JsonLinesTap(Parts(lines), READER, place.stamping, place.around).run()
    batches = [decode(record) for record in place.sink.records]
    assert sorted((batch.id_kind, batch.id_texts.decode()) for batch in batches if batch.count) == [
        (WireKind.UUID, ""), (WireKind.INT, ""), (WireKind.TEXT, "order 1größe"),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 400)))
def test_any_split_into_reads_gives_the_same_stamps(cuts: list[int]) -> None:
    """Any split into reads, and any end of the last line, gives the same stamps."""
    text = b"".join(map(line, range(10))) + b"bad\n" + line(10).rstrip()
    places = [0, *sorted(cut % len(text) for cut in cuts), len(text)]
    place = Place()
    parts = [text[start:end] for start, end in pairwise(places)]
    JsonLinesTap(Parts(parts), READER, place.stamping, place.around).run()
    assert place.ids() == [id_bytes(number) for number in range(11)]
    assert place.stamping.tally.bad == {SkipReason.NOT_JSON: 1}


@given(st.lists(st.binary(max_size=100)))
def test_no_bytes_can_stop_a_tap(parts: list[bytes]) -> None:
    """Every line of any bytes is stamped or counted as bad."""
    place = Place()
    JsonLinesTap(Parts(parts), READER, place.stamping, place.around).run()
    text = b"".join(parts)
    lines = sum(1 for one in text.split(b"\n") if one and not one.isspace())
    assert place.stamping.tally.stamped + place.stamping.tally.bad.total() == lines


def test_what_is_bad_is_a_drop_to_the_monitor() -> None:
    """Under the window of its event time, or under all that it may be of; so it is unknown there, and never lost."""
    place = Place()
    place.clock.advance(120)
    text = b'{"at": %d}\nbad\n' % EPOCH_US + b"x" * (MAX_LINE_BYTES - 100) + b"y" * 200 + b"\n"
    JsonLinesTap(Parts([text[:1_000], text[1_000:]]), READER, place.stamping, place.around).run()
    minute_ms = EPOCH_US // 1_000
    maybe_ms = range(minute_ms - 60_000, minute_ms + 120_001, 60_000)
    assert sorted(drops(place.sink.records), key=lambda drop: (drop.cause, drop.window_start_ms)) == [
        Drop(minute_ms, 1, "no_id"),
        *(Drop(start_ms, 1, "not_json") for start_ms in maybe_ms),
        *(Drop(start_ms, 1, "oversized") for start_ms in maybe_ms),
    ]
    assert place.stamping.tally.summary(place.probe.dropped) == {
        "stamped": 0, "bad": {"no_id": 1, "not_json": 1, "oversized": 1}, "dropped": 3,
    }  # fmt: skip
    assert place.heard == []


def test_what_is_no_message_is_no_drop() -> None:
    """With ``are_bad_messages=False`` a bad line is counted in the tally and is no drop."""
    place = Place(are_bad_messages=False)
    JsonLinesTap(Parts([b"bad\n", line(1)]), READER, place.stamping, place.around).run()
    assert (drops(place.sink.records), place.stamping.tally.bad) == ([], {SkipReason.NOT_JSON: 1})


def test_the_tally_is_told_at_intervals() -> None:
    """Every ten seconds in which it has changed."""
    place = Place()
    tap = JsonLinesTap(Parts([line(1), b"bad\n", b"", line(2)]), READER, place.stamping, place.around)
    for _ in range(4):
        place.clock.advance(10)
        tap.step()
    told = ["1 stamped, 0 bad", "1 stamped, 1 bad: not_json 1", "2 stamped, 1 bad: not_json 1"]
    assert place.heard == told


def test_the_position_is_kept_behind_what_is_durable(tmp_path: Path) -> None:
    """Up to the last whole line, and not before the sink has settled."""
    place, log, state = Place(), tmp_path / "app.log", StateFile(tmp_path / "state", tmp_path / "app.log")
    log.write_bytes(line(1) + b'{"id"')
    tap = JsonLinesTap(
        open_followed_file(log, place.around, state, from_start=True), READER, place.stamping, place.around, state
    )
    assert tap.step()
    assert state.load() is None
    place.sink.is_late = True
    assert not tap.settle()
    assert state.load() is None
    place.sink.is_late = False
    assert tap.settle()
    kept = state.load()
    assert kept is not None
    assert kept.offset == len(line(1))


def test_it_reads_no_further_while_the_sink_does_not_settle() -> None:
    """While the sink does not settle the tap reads no further, and counts nothing behind its position as kept."""
    place = Place()
    place.sink.is_late = True
    place.stop.most_waits = 20
    parts = Parts([line(1), line(2)], place)
    JsonLinesTap(parts, READER, place.stamping, place.around).run()
    assert place.ids() == [id_bytes(1)]
    assert not parts.is_over


def test_a_tap_whose_sink_has_lost_something_ends() -> None:
    """A restart stamps it again; going on would skip it."""
    place = Place()
    place.patient.has_lost = True
    with pytest.raises(TapSourceError, match="the sink could not keep what was stamped last: see to it"):
        JsonLinesTap(Parts([line(1)]), READER, place.stamping, place.around).run()


def test_many_stamps_are_settled_before_their_time() -> None:
    """So many that the probe's own bound is never met."""
    place = Place()
    lines = b"".join(map(line, range(1_000)))
    rounds = 2 * MAX_UNSETTLED // 1_000
    JsonLinesTap(Parts([lines] * rounds), READER, place.stamping, place.around).run()
    assert place.sink.settled == [0, MAX_UNSETTLED, 2 * MAX_UNSETTLED, 2 * MAX_UNSETTLED]
    assert place.probe.dropped == 0


def test_only_what_was_read_to_the_end_is_complete(tmp_path: Path) -> None:
    """While there is more to read, nothing is; then all is up to the moment of the last look."""
    place, log = Place(), tmp_path / "app.log"
    log.write_bytes(line(1))
    source = open_followed_file(log, place.around, None, from_start=True)
    tap = JsonLinesTap(source, READER, place.stamping, place.around)
    log.rename(tmp_path / "app.log.1")
    log.write_bytes(line(2))
    through_us = []
    for _ in range(6):
        place.clock.advance(2)
        tap.step()
        tap.settle()
        place.probe._sender.flush()  # type: ignore[union-attr]
        through_us.append(decode(place.sink.records[-1]).complete_through_us)
    assert place.ids() == [id_bytes(1), id_bytes(2)]
    # The first read finds all of a file whose new name nobody has looked at yet.
    assert through_us == [EPOCH_US + 2_000_000] * 3 + [EPOCH_US + 8_000_000] * 3


def test_a_pipe_is_read_until_its_end() -> None:
    """A line of a pipe is stamped when it comes, and the last one without its newline, too."""
    place = Place()
    reading, writing = os.pipe()
    pipe = Pipe(reading, wait_s=0)
    tap = JsonLinesTap(pipe, READER, place.stamping, place.around)
    assert not tap.step()
    os.write(writing, line(1) + line(2).rstrip())
    assert tap.step()
    os.close(writing)
    tap.run()
    os.close(reading)
    assert (place.ids(), pipe.is_over, pipe.position(0)) == ([id_bytes(1), id_bytes(2)], True, None)
    assert not pipe.is_behind


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a pipe, to read and to write; neither waits."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def filled(writing: int) -> int:
    """Write lines until the pipe takes no more, and return how many."""
    for number in count():
        try:
            os.write(writing, line(number))
        except BlockingIOError:
            return number
    raise AssertionError


def test_a_pipe_is_behind_while_something_waits_in_it(ends: tuple[int, int]) -> None:
    """A pipe is behind as long as bytes wait in it."""
    reading, writing = ends
    pipe = Pipe(reading, wait_s=0)
    assert (pipe.read(100), pipe.is_behind) == (b"", False)
    os.write(writing, b"onetwo")
    assert (pipe.read(3), pipe.is_behind) == (b"one", True)
    assert (pipe.read(3), pipe.is_behind) == (b"two", False)


def test_a_pipe_that_was_full_is_behind(ends: tuple[int, int]) -> None:
    """A pipe that was full counts as behind, as its writer may have waited with more."""
    reading, writing = ends
    pipe = Pipe(reading, wait_s=0)
    # Of whatever size its writes are: one of 2049 bytes leaves the rest of each page empty.
    for size in (1, 2_049, 65_536):
        with suppress(BlockingIOError):
            while os.write(writing, b"x" * size) == size:
                pass
        assert (len(pipe.read(READ_BYTES)) < READ_BYTES, pipe.is_behind) == (True, True)
        assert (pipe.read(READ_BYTES), pipe.is_behind) == (b"", False)


def test_a_pipe_completes_nothing_before_all_that_waited_is_read(ends: tuple[int, int]) -> None:
    """A read brings 64 KB at most, however many lines wait; then all is complete up to the last look."""
    reading, writing = ends
    place, written, through_us = Place(), 0, []
    tap = JsonLinesTap(Pipe(reading, wait_s=0), READER, place.stamping, place.around)
    for is_more in (True, True, True, False):
        written += filled(writing) if is_more else 0
        place.clock.advance(1)
        tap.step()
        tap.settle()
        assert place.probe._sender is not None
        through_us.append(place.probe._sender._find_complete_us())
    assert (len(place.ids()), through_us) == (written, [0, 0, 0, EPOCH_US + 4_000_000])


def test_a_tap_that_is_to_stop_stops() -> None:
    """Between two looks, with all that was stamped settled."""
    place = Place()
    place.stop.most_waits = 3
    reading, writing = os.pipe()
    os.write(writing, line(1))
    JsonLinesTap(Pipe(reading, wait_s=0), READER, place.stamping, place.around).run()
    os.close(reading)
    os.close(writing)
    assert place.ids() == [id_bytes(1)]
    assert place.clock.us == EPOCH_US + round(3 * POLL_S * 1e6)
