"""Tests of the gate's spool as a link: what comes, what comes again, and when a segment goes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.demo.entrance.events import pack_event
from hopwatch.demo.link import LinkError
from hopwatch.demo.links.gate_spool_inlet import GateSpoolInlet
from hopwatch.gate.records import EnteredRecord
from hopwatch.probes.contract.segment import MAGIC, encode_frame
from tests.support.examples import examples


def payload(number: int) -> bytes:
    """Return an event as the link hands it on."""
    return pack_event(number.to_bytes(16, "big"), number, b"event")


def write(spool: Path, name: str, *numbers: int) -> Path:
    """Write a segment with events, as the gate does."""
    path = spool / "gate-1-2" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [EnteredRecord("flights", number.to_bytes(16, "big"), number, 9, b"event").encode() for number in numbers]
    path.write_bytes(MAGIC + b"".join(map(encode_frame, events)))
    return path


def test_segments_come_in_order_each_once(tmp_path: Path) -> None:
    """One at a time; what is open is not there yet, and before the gate has begun nothing is."""
    inlet = GateSpoolInlet(tmp_path / "events")
    assert inlet.receive(0.0) == []
    write(tmp_path / "events", "0000000001.seg", 3)
    write(tmp_path / "events", "0000000000.seg", 1, 2)
    write(tmp_path / "events", "0000000002.open", 4)
    assert not inlet.has_ended()
    assert inlet.receive(0.0) == [payload(1), payload(2)]
    assert inlet.receive(0.0) == [payload(3)]
    assert inlet.receive(0.06) == []
    assert inlet.has_ended()


def test_a_segment_goes_once_all_in_it_is_done(tmp_path: Path) -> None:
    """Not before: a reader that is killed meanwhile finds it again."""
    first = write(tmp_path, "0000000000.seg", 1, 2)
    second = write(tmp_path, "0000000001.seg", 3)
    inlet = GateSpoolInlet(tmp_path)
    assert len(inlet.receive(0.0) + inlet.receive(0.0)) == 3
    inlet.done(1)
    assert first.exists()
    inlet.done(2)
    assert not first.exists()
    inlet.close()
    assert GateSpoolInlet(tmp_path).receive(0.0) == [payload(3)]
    inlet.done(3)
    assert not second.exists()


def test_a_segment_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A record that is damaged, and one that is no event of a gate."""
    path = write(tmp_path, "0000000000.seg", 1)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(LinkError, match=rf"^the segment {path} of the gate cannot be read: CRC-32C 0x"):
        GateSpoolInlet(tmp_path).receive(0.0)
    path.write_bytes(MAGIC + encode_frame(b"something"))
    with pytest.raises(LinkError, match=rf"^the segment {path} holds what is no event of the gate: an event that"):
        GateSpoolInlet(tmp_path).receive(0.0)


@settings(max_examples=examples(60))
@given(sizes=st.lists(st.integers(1, 3), max_size=5), steps=st.lists(st.sampled_from(["receive", "hand on", "kill"])))
def test_a_reader_that_is_killed_at_any_moment_loses_nothing(sizes: list[int], steps: list[str]) -> None:
    """Each event is handed on at least once, whatever was killed when; at the end no segment is left."""
    with TemporaryDirectory() as folder:
        spool, numbers = Path(folder), iter(range(100))
        for place, size in enumerate(sizes):
            write(spool, f"{place:010d}.seg", *islice(numbers, size))
        inlet, held, handed_on, done_count = GateSpoolInlet(spool), list[bytes](), list[bytes](), 0
        for step in (*steps, *(["receive"] * len(sizes)), *(["hand on"] * sum(sizes))):
            if step == "kill":
                inlet, held, done_count = GateSpoolInlet(spool), [], 0
            elif step == "receive":
                held += inlet.receive(0.0)
            elif held:
                handed_on.append(held.pop(0))
                done_count += 1
                inlet.done(done_count)
        assert set(handed_on) == {payload(number) for number in range(sum(sizes))}
        assert inlet.has_ended()
        assert not list(spool.glob("*/*.seg"))
