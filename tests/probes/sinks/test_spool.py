"""Tests of the spool: segments whole or not there, and a host that a bad disk costs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.segment import FRAME_BYTES, MAGIC, folder_name, read_frames
from hopwatch.probes.sinks import open_sink
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.testing import ManualClock

INSTANCE = "orders.router.host-1.1"


@pytest.fixture
def sink(tmp_path: Path, clock: ManualClock) -> SpoolSink:
    """Return a spool on it."""
    return SpoolSink(tmp_path, INSTANCE, clock)


def names(sink: SpoolSink) -> list[str]:
    """Return the names of the files of a spool."""
    return sorted(path.name for path in sink.folder.iterdir())


def records(sink: SpoolSink) -> list[bytes]:
    """Return what a reader finds in the segments, each of which is without a fault."""
    found = []
    for path in sorted(sink.folder.glob("*.seg")):
        data = path.read_bytes()
        frames = list(read_frames(data))
        assert [frame.fault for frame in frames] == [""] * len(frames)
        found += [data[frame.start : frame.end] for frame in frames]
    return found


def test_nothing_is_touched_before_the_first_record(sink: SpoolSink, tmp_path: Path) -> None:
    """A probe that never sends leaves no trace."""
    sink.tick()
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_is_there_whole_or_not_at_all(sink: SpoolSink, clock: ManualClock) -> None:
    """Younger than a second it has a name that no reader looks at; then it is published with all its records."""
    assert sink.send(b"one")
    clock.advance(0.999)
    sink.tick()
    assert sink.send(b"two")
    assert names(sink) == ["0000000000.open"]
    clock.advance(0.001)
    sink.tick()
    assert names(sink) == ["0000000000.seg"]
    assert sink.send(b"three")
    sink.close()
    assert names(sink) == ["0000000000.seg", "0000000001.seg"]
    assert records(sink) == [b"one", b"two", b"three"]


def test_a_segment_of_8_mib_is_published_at_once(sink: SpoolSink) -> None:
    """Its age does not matter then."""
    mebibyte = bytes(1024 * 1024)
    for _ in range(7):
        assert sink.send(mebibyte)
    assert names(sink) == ["0000000000.open"]
    assert sink.send(mebibyte)
    assert names(sink) == ["0000000000.seg"]
    assert records(sink) == [mebibyte] * 8


def test_a_full_spool_refuses_until_the_monitor_has_deleted(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Unread and open segments stay within the bound; a second later the sink looks for room again, and logs it."""
    framed = FRAME_BYTES + 100
    sink = SpoolSink(tmp_path, INSTANCE, clock, most_bytes=2 * (len(MAGIC) + framed))
    for _ in range(2):
        assert sink.send(bytes(100))
        clock.advance(1)
        sink.tick()
    assert not sink.send(bytes(100))
    clock.advance(1)
    sink.tick()
    assert not sink.send(b"")
    assert names(sink) == ["0000000000.seg", "0000000001.seg"]
    told = f"the spool {sink.folder} is full: {sink.most_bytes} bytes are kept, which the monitor has not deleted yet"
    assert caplog.messages == [told]
    (sink.folder / "0000000000.seg").unlink()
    assert not sink.send(bytes(100))
    clock.advance(1)
    assert sink.send(bytes(100))


class Tidied:
    """Stands before ``os.scandir``: what it lists is deleted before anybody can look closer, as a monitor may do."""

    def __init__(self, names: set[str]) -> None:
        """Name the files that go."""
        self.names = names

    def scandir(self, folder: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """List a folder, and delete some of it."""
        with _scandir(folder) as entries:
            listed = list(entries)
        for entry in listed:
            if entry.name in self.names:
                Path(entry.path).unlink()
        return nullcontext(iter(listed))


_scandir = os.scandir


@pytest.mark.parametrize("gone", [{"0000000000.seg"}, {"0000000000.seg", "0000000001.seg"}])
def test_a_segment_that_is_deleted_while_room_is_looked_for_is_not_counted(
    sink: SpoolSink, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, gone: set[str]
) -> None:
    """The monitor tidies up at any moment: nothing is refused for it, and what is left counts."""
    for _ in range(2):
        assert sink.send(b"read")
        assert sink.settle(0)
    left = sum((sink.folder / name).stat().st_size for name in {"0000000000.seg", "0000000001.seg"} - gone)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Tidied(gone).scandir)
        assert sink.send(b"kept")
    assert sink._kept_bytes == left
    sink.close()
    assert (records(sink)[-1], caplog.messages) == (b"kept", [])


def test_an_open_segment_counts_to_the_bound(tmp_path: Path, clock: ManualClock) -> None:
    """The record that would break it is refused; those before it are published."""
    sink = SpoolSink(tmp_path, INSTANCE, clock, most_bytes=len(MAGIC) + 2 * (FRAME_BYTES + 1))
    assert [sink.send(text) for text in (b"a", b"b", b"c")] == [True, True, False]
    sink.close()
    assert records(sink) == [b"a", b"b"]


def test_a_folder_that_cannot_be_is_tried_again_later(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """With a file in the way the spool refuses records, tries again after a second, and logs the reason once."""
    root = tmp_path / "spool"
    root.write_text("in the way")
    sink = SpoolSink(root, INSTANCE, clock)
    assert not sink.send(b"one")
    clock.advance(1)
    assert not sink.send(b"one")
    assert caplog.messages == [f"the spool {sink.folder} cannot be written: Not a directory"]
    root.unlink()
    assert not sink.send(b"two")
    clock.advance(1)
    assert sink.send(b"three")
    sink.close()
    assert records(sink) == [b"three"]


class Disk:
    """Stands before ``os.pwrite``: takes ``room`` bytes in all, a few at a time, and has no space then."""

    def __init__(self, room: int) -> None:
        """Set the room."""
        self.room = room

    def pwrite(self, file: int, data: memoryview, offset: int) -> int:
        """Write a part of the data."""
        if not self.room:
            raise OSError(28, "No space left on device")
        part = min(self.room, 7, len(data))
        self.room -= part
        return _pwrite(file, data[:part], offset)


_pwrite = os.pwrite


@pytest.mark.parametrize("room", range(2 * (FRAME_BYTES + 10) + len(MAGIC)))
def test_a_record_that_was_half_written_is_cut_off(
    sink: SpoolSink, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """A segment has exactly the records that were accepted, wherever the disk was full, in the magic too."""
    disk = Disk(room)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    sent = [b"record one", b"record two"]
    taken = [record for record in sent if sink.send(record)]
    disk.room = 1_000
    clock.advance(0.5)
    assert sink.send(b"3") is (len(taken) == 2)
    clock.advance(0.5)
    assert sink.send(b"four")
    sink.close()
    assert records(sink) == [*taken, *([b"3"] if len(taken) == 2 else []), b"four"]


@pytest.mark.parametrize(("taken", "room"), [([], 3), ([b"one"], len(MAGIC) + FRAME_BYTES + 3 + 5)])
def test_a_half_record_at_the_end_is_not_published(
    sink: SpoolSink, monkeypatch: pytest.MonkeyPatch, taken: list[bytes], room: int
) -> None:
    """The cut comes before the name, and nothing at all gets none."""
    monkeypatch.setattr(os, "pwrite", Disk(room).pwrite)
    assert [record for record in (b"one", b"two") if sink.send(record)] == taken
    sink.close()
    assert (len(names(sink)), records(sink)) == (len(taken), taken)


@pytest.mark.parametrize("step", ["fsync", "ftruncate", "close"])
def test_a_segment_that_cannot_be_synced_is_deleted(
    sink: SpoolSink, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its records are lost, which their numbers tell; it fills no disk, and the spool goes on a second later."""
    real = getattr(os, step)

    def fail(file: int, *rest: int) -> None:
        if step == "close":
            real(file)
        raise OSError(5, f"Input/output error at {file} {rest}")

    assert sink.send(b"lost")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        sink.close()
    assert names(sink) == []
    assert not sink.send(b"too soon")
    clock.advance(1)
    assert sink.send(b"kept")
    sink.close()
    assert (names(sink), records(sink)) == (["0000000001.seg"], [b"kept"])


def test_settling_publishes_what_is_open(sink: SpoolSink) -> None:
    """An open segment of any age is published; without an open segment all is settled, too."""
    assert sink.settle(0)
    assert sink.send(b"one")
    assert sink.settle(0)
    assert (names(sink), records(sink)) == (["0000000000.seg"], [b"one"])


def test_what_cannot_be_published_is_not_settled(
    sink: SpoolSink, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller learns that it is lost, whenever that was, and once."""

    def fail(file: int) -> None:
        raise OSError(5, f"Input/output error at {file}")

    assert sink.send(b"lost")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert not sink.settle(0)
        assert sink.settle(0)
        clock.advance(1)
        assert sink.send(b"lost too")
        clock.advance(1)
        sink.tick()
    assert not sink.settle(0)
    assert names(sink) == []


def test_a_spool_whose_folder_was_deleted_begins_again(sink: SpoolSink, clock: ManualClock) -> None:
    """The open segment is lost; the next one has a folder again."""
    assert sink.send(b"lost")
    (sink.folder / "0000000000.open").unlink()
    sink.folder.rmdir()
    sink.close()
    clock.advance(1)
    assert sink.send(b"kept")
    sink.close()
    assert records(sink) == [b"kept"]


def test_a_spool_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that changes its working directory does not take the spool along."""
    monkeypatch.chdir(tmp_path)
    sink = open_sink("spool:./var/spool", INSTANCE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert sink.send(b"one")
    sink.close()
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*.seg")] == [
        Path("var/spool", INSTANCE, "0000000000.seg")
    ]


@pytest.mark.parametrize("url", ["", "spool", "spool:", "kafka:host", "var/spool"])
def test_a_sink_that_is_not_known_is_refused(url: str) -> None:
    """The sentence says what a sink is and what was got."""
    with pytest.raises(ValueError, match="a sink is") as caught:
        open_sink(url, INSTANCE)
    assert str(caught.value) == f"a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got {url!r}"


@given(st.text() | st.from_regex(r"[A-Za-z0-9._-]{0,140}", fullmatch=True))
def test_a_folder_name_is_safe_everywhere(instance: str) -> None:
    """The name of a folder is one plain part of a path, not hidden, and short enough for any file system."""
    name = folder_name(instance)
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name[0] not in "._"
    assert 1 <= len(name) <= 133


@given(st.lists(st.text("ab./_ ä", max_size=5) | st.text("a.", min_size=119, max_size=122), unique=True))
def test_no_two_instances_share_a_folder(instances: list[str]) -> None:
    """Names that look alike once they are made safe stay apart."""
    assert len(set(map(folder_name, instances))) == len(instances)
