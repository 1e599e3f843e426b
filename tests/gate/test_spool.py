"""Tests of the spool outlet: records reported as written are on disk, also after a kill."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hopwatch.gate.outlets import OutletError, open_outlet
from hopwatch.gate.outlets.recovery import LOCK_NAME, lock_folder, recover_segments
from hopwatch.gate.outlets.spool import MIN_FREE_BYTES, SpoolOutlet
from hopwatch.gate.records import EnteredRecord
from hopwatch.probes.clock import SystemClock
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.contract.segment import MAGIC, encode_frame
from hopwatch.probes.sinks.spool import SpoolSink
from tests.repository import ROOT
from tests.support.gate_spool import PATIENCE_S, leaving, published, written


def test_events_are_written_with_their_ids_and_times(tmp_path: Path) -> None:
    """A spool has no headers, so that each is in a record that says them; what is rejected says them itself."""
    for stream in ("orders", ""):
        root = tmp_path / f"to-{stream}"
        outlet = SpoolOutlet(root, stream, SystemClock())
        outlet.check()
        assert written(outlet, 1, 2) == frozenset()
        outlet.close()
        entered = [EnteredRecord(stream, leaving(at).event_id, at, at + 1, b"event").encode() for at in (1, 2)]
        assert published(root) == (entered if stream else [b"event"] * 2)
        assert not list(root.glob(f"*/{LOCK_NAME}"))


def test_many_requests_are_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one sync runs, what comes waits for the next, all of it together."""
    syncs, may_go = [], threading.Event()
    sync = SpoolSink.sync

    def slow(sink: SpoolSink) -> bool:
        syncs.append(1)
        may_go.wait(PATIENCE_S)
        return sync(sink)

    monkeypatch.setattr(SpoolSink, "sync", slow)
    outlet = SpoolOutlet(tmp_path, "", SystemClock())
    done = [threading.Event() for _ in range(50)]
    for number, one in enumerate(done):
        outlet.write([leaving(number)], lambda _, one=one: one.set())  # type: ignore[misc]
    may_go.set()
    assert all(one.wait(PATIENCE_S) for one in done)
    assert len(syncs) <= 3
    outlet.close()
    assert len(published(tmp_path)) == 50


def test_a_disk_that_cannot_be_synced_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that cannot be synced is not acknowledged; earlier ones stay, and later ones are taken again."""
    outlet = SpoolOutlet(tmp_path, "", SystemClock())
    assert written(outlet, 1) == frozenset()
    fsync = os.fsync

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    assert written(outlet, 2) == {leaving(2).event_id}
    monkeypatch.setattr(os, "fsync", fsync)
    assert written(outlet, 3) == frozenset()
    outlet.close()
    recover_segments(tmp_path)
    assert len(published(tmp_path)) == 2


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    """More is refused, and nothing of it is taken."""
    outlet = SpoolOutlet(tmp_path, "", SystemClock(), most_waiting_bytes=9)
    with pytest.raises(OutletError, match=r"0 bytes wait for the spool /.* already"):
        outlet.write([leaving(1), leaving(2)], lambda _: None)
    assert written(outlet, 1) == frozenset()
    outlet.close()
    assert len(published(tmp_path)) == 1


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    """Before the gate listens."""
    (tmp_path / "file").write_bytes(b"")
    outlet = SpoolOutlet(tmp_path / "file", "", SystemClock())
    with pytest.raises(OutletError, match=r"the spool /.*/file cannot be written: Not a directory"):
        outlet.check()
    outlet.close()


def test_room_is_looked_for_where_the_system_reserves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By writing it, as on macOS."""
    monkeypatch.delattr(os, "posix_fallocate")
    outlet = SpoolOutlet(tmp_path, "", SystemClock())
    outlet.check()
    outlet.close()


def test_a_disk_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file can be made there still; as soon as there is room it is well again."""
    outlet = SpoolOutlet(tmp_path, "", SystemClock())
    allocate = os.posix_fallocate

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutletError, match=r"the spool /.* cannot be written: No space left on device"):
        outlet.check()
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    outlet.check()
    outlet.close()
    assert not list(tmp_path.glob("*/*"))


def test_nobody_else_reads_what_was_sent(tmp_path: Path) -> None:
    """Segments are their owner's alone, open or published, and so are the folders; one that is there stays as it is."""
    (tmp_path / "there").mkdir(mode=0o755)
    for name, mode in (("made", 0o700), ("there", 0o755)):
        outlet = SpoolOutlet(tmp_path / name, "", SystemClock())
        outlet.check()
        assert written(outlet, 1) == frozenset()
        modes = {one.suffix: one.stat().st_mode & 0o777 for one in (tmp_path / name).glob("*/*")}
        assert modes[".open"] == 0o600
        outlet.close()
        (segment,) = (tmp_path / name).glob("*/*.seg")
        assert [one.stat().st_mode & 0o777 for one in (segment, segment.parent, segment.parent.parent)] == [
            0o600, 0o700, mode,
        ]  # fmt: skip


@pytest.mark.parametrize("is_published", [False, True])
def test_a_spool_that_is_full_is_told(tmp_path: Path, is_published: bool) -> None:  # noqa: FBT001 - drawn
    """Of segments that are open too: what would be 503 makes it not ready."""
    outlet = SpoolOutlet(tmp_path, "", SystemClock())
    outlet.check()
    assert written(outlet, 1) == frozenset()
    if is_published:
        outlet._sink._publish()
    outlet._sink.most_bytes = MIN_FREE_BYTES
    with pytest.raises(OutletError, match="cannot be written: it is full: 2,097,152 bytes are kept, which nobody has"):
        outlet.check()
    outlet._sink.most_bytes = MIN_FREE_BYTES + 1_000
    outlet.check()
    outlet.close()


def test_what_a_killed_gate_acknowledged_is_published_by_the_next(tmp_path: Path) -> None:
    """SIGKILL right behind the acknowledgement; nothing is lost, and nothing comes twice."""
    program = f"""
from pathlib import Path
from hopwatch.probes.clock import SystemClock
from tests.support.gate_spool import written
from hopwatch.gate.outlets.spool import SpoolOutlet
outlet = SpoolOutlet(Path({str(tmp_path)!r}), "", SystemClock())
outlet.check()
for number in range(30):
    assert not written(outlet, number)
print("acknowledged", flush=True)
input()
"""
    for round_ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "acknowledged\n"
        recover_segments(tmp_path)  # who lives is left alone
        process.send_signal(signal.SIGKILL)
        process.communicate()
        recover_segments(tmp_path)
        recover_segments(tmp_path)
        assert len(published(tmp_path)) == 30 * (round_ + 1)
    assert not list(tmp_path.glob(f"*/{LOCK_NAME}"))


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (MAGIC + encode_frame(b"one") + encode_frame(b"two"), 2),
        (MAGIC + encode_frame(b"one") + encode_frame(b"two")[:-1], 1),
        (MAGIC + encode_frame(b"one") + bytes(3), 1),
        (MAGIC + encode_frame(b"one")[:-1], 0),
        (MAGIC + encode_frame(b"one") + bytes(64), 1),
        (MAGIC, 0),
        (MAGIC[:3], 0),
        (b"", 0),
    ],
)
def test_an_open_segment_is_cut_behind_its_last_whole_record(tmp_path: Path, data: bytes, records: int) -> None:
    """An open segment is cut behind its last whole record, and deleted if it has none."""
    folder = tmp_path / "gate-1"
    folder.mkdir()
    (folder / "0000000007.open").write_bytes(data)
    (folder / LOCK_NAME).touch()
    (tmp_path / "a-probe").mkdir()
    (tmp_path / "a-probe" / "0000000001.open").write_bytes(data)
    recover_segments(tmp_path)
    assert len(published(tmp_path)) == records
    assert sorted(one.name for one in folder.iterdir()) == (["0000000007.seg"] if records else [])
    assert (tmp_path / "a-probe" / "0000000001.open").exists()


def test_what_cannot_be_published_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end, or by the next gate: what was acknowledged is not forgotten for a disk that failed for a while."""
    rename = Path.rename

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for is_mended in (True, False):
        outlet = SpoolOutlet(tmp_path / str(is_mended), "", SystemClock())
        outlet.check()
        assert written(outlet, 1, 2) == frozenset()
        monkeypatch.setattr(Path, "rename", broken)
        outlet._sink._publish()
        if is_mended:
            monkeypatch.setattr(Path, "rename", rename)
        outlet.close()
        assert bool(published(tmp_path / str(is_mended))) is is_mended
        monkeypatch.setattr(Path, "rename", rename)
        recover_segments(tmp_path / str(is_mended))
        assert len(published(tmp_path / str(is_mended))) == 2


def test_a_lock_that_was_deleted_in_between_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gate that starts looks into the folder between the two steps of a lock."""
    flock, are_between = fcntl.flock, [True]

    def between(lock: int, how: int) -> None:
        if are_between:
            are_between.clear()
            recover_segments(tmp_path)
        flock(lock, how)

    (tmp_path / "gate-1").mkdir()
    monkeypatch.setattr(fcntl, "flock", between)
    lock = lock_folder(tmp_path / "gate-1")
    assert (tmp_path / "gate-1" / LOCK_NAME).exists()
    with pytest.raises(BlockingIOError):
        lock_folder(tmp_path / "gate-1")
    os.close(lock)


def test_a_folder_has_one_gate(tmp_path: Path) -> None:
    """A second lock is refused as long as the first is held."""
    first = lock_folder(tmp_path)
    with pytest.raises(BlockingIOError):
        lock_folder(tmp_path)
    os.close(first)
    os.close(lock_folder(tmp_path))


@pytest.mark.parametrize("url", ["", "spool:", "kafka:/x/y", "orders"])
def test_a_place_that_is_none_is_refused(url: str) -> None:
    """With what it may be."""
    with pytest.raises(ValueError, match=r"events go to spool:FOLDER or kafka://HOST:PORT/TOPIC, got '"):
        open_outlet(url, "orders", KafkaAccess(), SystemClock())
