"""Tests of a sink that waits, and of what is told when it cannot any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.blocking_sink import BlockingSink
from tests.support.tap_bench import HastyEvent, Place


class Reopening(HastyEvent):
    """While one waits, the sink of a place gets room again."""

    def __init__(self, place: Place) -> None:
        """Take the place."""
        super().__init__(place.clock)
        self._place = place

    def wait(self, timeout: float | None = None) -> bool:
        """Make room the third time."""
        self._place.sink.is_full = self.waits < 2
        return super().wait(timeout)


def test_a_record_is_offered_until_it_is_taken() -> None:
    """A record is offered until the sink takes it, and the log says when waiting begins and ends."""
    place = Place()
    object.__setattr__(place.around, "stop", Reopening(place))
    place.sink.is_full = True
    assert place.patient.send(b"one")
    assert place.patient.send(b"two")
    assert place.sink.records == [b"one", b"two"]
    assert place.heard == ["the sink takes nothing: reading no further until it does", "the sink takes records again"]
    assert not place.patient.has_lost


def test_who_is_to_stop_waits_no_more() -> None:
    """After a stop, a record that the sink does not take is lost, and counted as lost."""
    place = Place()
    place.sink.is_full = True
    place.stop.set()
    assert not place.patient.send(b"one")
    assert place.patient.has_lost


def test_what_is_lost_stays_lost() -> None:
    """Though the sink takes what comes after it, the last record of all on the second try."""
    place = Place()
    place.sink.is_full = True
    place.stop.set()
    assert not place.patient.send(b"one")
    object.__setattr__(place.around, "stop", Reopening(place))
    place.around.stop.waits = 2  # type: ignore[attr-defined]
    place.around.stop.set()
    assert place.patient.send(b"two")
    assert (place.sink.records, place.patient.has_lost) == ([b"two"], True)


def test_a_spool_that_could_not_publish_has_lost_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport that is only late has not."""
    place = Place()
    monkeypatch.setattr(SpoolSink, "settle", lambda *_: False)
    patient = BlockingSink(SpoolSink(tmp_path, "a"), place.around)
    assert (patient.settle(0), patient.has_lost, patient.is_settled) == (False, True, False)
    monkeypatch.setattr(place.sink, "settle", lambda _: False)
    assert (place.patient.settle(0), place.patient.has_lost) == (False, False)


def test_what_the_transport_refused_in_the_end_is_lost() -> None:
    """Records that the transport refused later are returned and counted as lost."""
    place = Place()
    place.sink.failing = [b"one"]
    assert (place.patient.failed(), place.patient.has_lost) == ([b"one"], True)
    assert (place.patient.failed(), place.patient.has_lost) == ([], True)


def test_the_rest_goes_to_the_sink(tmp_path: Path) -> None:
    """Ticks and the close are passed on to the sink."""
    place = Place()
    patient = BlockingSink(SpoolSink(tmp_path, "a", place.clock), place.around)
    assert patient.send(b"one")
    place.clock.advance(1)
    patient.tick()
    assert patient.send(b"two")
    patient.close()
    assert len(list(tmp_path.rglob("*.seg"))) == 2
