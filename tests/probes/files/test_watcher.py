"""Tests of the tap of a folder: it imports what is finished, once, as an import does."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from hopwatch.probes.files import done_files
from hopwatch.probes.files.done_files import DoneFiles
from hopwatch.probes.files.importer import FileResult, Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.places import list_folder
from hopwatch.probes.files.watcher import FolderTap
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from tests.support.file_permissions import without_root
from tests.support.made_files import MAPPING, as_jsonl, import_files, made_rows
from tests.support.probe_host import spooled

PLAN = ImportPlan("flights", "file", MAPPING, bye=True)


class Clock:
    """Clock that a test sets."""

    def __init__(self) -> None:
        """Start far behind the files."""
        self.now_ns = 1_000 * 10**9

    def wall_ns(self) -> int:
        """Return the time of day: that of files that were written just now."""
        return self.now_ns

    def monotonic_ns(self) -> int:
        """Return the same."""
        return self.now_ns


class Watch:
    """A tap of a folder, with what it told."""

    def __init__(self, root: Path, done: DoneFiles | None = None) -> None:
        """Open it."""
        self.clock, self.results, self.told = Clock(), list[FileResult](), list[str]()
        self.folder = root / "files"
        self.folder.mkdir(exist_ok=True)
        output = SpoolOutput(root / "spool", is_replay=False)
        output.check()
        around = RunContext(self.told.append, self.clock, Event())
        self.tap = FolderTap(self.folder, Importer(PLAN, output), output, done, around, self.results.append)
        self.stop = around.stop

    def step(self, seconds: int) -> None:
        """Let time pass, and look once."""
        self.clock.now_ns += seconds * 10**9
        self.tap.step()


def test_a_file_is_imported_once_it_is_quiet(tmp_path: Path) -> None:
    """Not while it grows, not twice, and not while its name begins with a dot; again when it has changed since."""
    watch = Watch(tmp_path)
    place = watch.folder / "a.jsonl"
    place.write_bytes(as_jsonl(made_rows(0, 5)))
    (watch.folder / ".part").write_bytes(b"x")
    watch.step(0)
    watch.step(4)
    place.write_bytes(as_jsonl(made_rows(0, 9)))
    watch.step(4)
    assert not watch.results
    watch.step(6)
    watch.step(60)
    assert [(result.name, result.observations) for result in watch.results] == [(str(place), 9)]
    place.write_bytes(as_jsonl(made_rows(0, 10)))
    watch.step(1)
    watch.step(6)
    assert [result.observations for result in watch.results] == [9, 10]


def test_its_batches_are_those_of_an_import(tmp_path: Path) -> None:
    """Byte for byte, under the same numbers."""
    watch = Watch(tmp_path)
    (watch.folder / "a").write_bytes(as_jsonl(made_rows(0, 500)))
    watch.step(0)
    watch.step(9)
    watch.stop.set()
    watch.tap.run()
    import_files(tmp_path / "other", PLAN, watch.folder / "a")
    by_number = [
        {name: sorted(batches, key=lambda batch: batch.seq) for name, batches in spooled(tmp_path / spool).items()}
        for spool in ("spool", "other")
    ]
    assert by_number[0] == by_number[1]


def test_a_restart_reads_none_again_and_a_kill_half_of_a_line(tmp_path: Path) -> None:
    """The state is a line a file; a line that was cut is as if it was not there."""
    state = tmp_path / "state"
    for times in range(3):
        done = DoneFiles(state, "plan")
        with done.lock():
            watch = Watch(tmp_path, done)
            (watch.folder / f"{times}").write_bytes(as_jsonl(made_rows(times * 10, times * 10 + 5)))
            watch.step(0)
            watch.step(9)
            assert [Path(result.name).name for result in watch.results] == [f"{times}"]
        with state.open("a") as file:
            file.write('{"path": "half of a')


def test_rows_that_come_while_a_file_is_made_durable_are_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state notes the file as it was when it was read, and not as it is by then."""
    done = DoneFiles(tmp_path / "state", "plan")
    with done.lock():
        watch = Watch(tmp_path, done)
        place = watch.folder / "a"
        place.write_bytes(as_jsonl(made_rows(0, 5)))
        monkeypatch.setattr(SpoolOutput, "settle", lambda _: place.write_bytes(as_jsonl(made_rows(0, 9))))
        for seconds in (0, 9, 1, 9):
            watch.step(seconds)
        assert [result.observations for result in watch.results] == [5, 9]


def test_a_file_that_could_not_be_read_is_tried_again_after_a_restart(tmp_path: Path) -> None:
    """The fault may have been a moment's, and no look at the file tells that it is over."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_bytes(b"PAR1 and no end")
    for _ in range(2):
        done = DoneFiles(tmp_path / "state", "plan")
        with done.lock():
            watch = Watch(tmp_path, done)
            watch.step(0)
            watch.step(9)
            assert [bool(result.fault) for result in watch.results] == [True]


def test_a_mapping_that_does_not_fit_a_file_stops_no_other(tmp_path: Path) -> None:
    """The tap tells of it once."""
    watch = Watch(tmp_path)
    (watch.folder / "a").write_bytes(b'{"x": 1}\n')
    (watch.folder / "b").write_bytes(as_jsonl(made_rows(0, 5)))
    watch.step(0)
    watch.step(9)
    watch.step(9)
    assert [result.observations for result in watch.results] == [5]
    assert watch.told == [f"{watch.folder}/a: there is no column 'id', there are x"]


def test_a_state_is_of_one_import_at_a_time_and_of_one_plan(tmp_path: Path) -> None:
    """The lock is the kernel's; a folder of it that is not there is made."""
    state = tmp_path / "state"
    with DoneFiles(state, "plan").lock(), pytest.raises(TapSourceError, match="another import keeps its state in"):
        DoneFiles(state, "plan").lock().__enter__()
    with pytest.raises(TapUsageError, match=r"is not the state of this import \(it is of plan\): name another file"):
        DoneFiles(state, "another").lock().__enter__()
    with pytest.raises(TapSourceError, match=r"cannot be written: .*: name a place that this user can write"):
        DoneFiles(state / "in" / "state", "plan").lock().__enter__()
    with DoneFiles(tmp_path / "made" / "state", "plan").lock():
        assert (tmp_path / "made" / "state").is_file()


@pytest.mark.parametrize(
    "content",
    [b'{"version": 1, "plan": "plan", "slices": [], "ends": []}\n', b"\xff\xfe\n"],
    ids=["a list for slices", "no text"],
)
def test_a_state_of_which_a_part_is_no_state_is_refused(content: bytes, tmp_path: Path) -> None:
    """A list stands where the slices of servers belong, or it is no text at all."""
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(TapUsageError, match=r"is not the state of this import .*: name another file"):
        DoneFiles(tmp_path / "state", "plan").lock().__enter__()


def test_a_folder_inside_may_be_gone_by_then(tmp_path: Path) -> None:
    """Folders of days are made and cleaned up while the tap looks."""
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").mkdir()
    found = list_folder(tmp_path)
    assert next(found) == str(tmp_path / "a")
    (tmp_path / "b").rmdir()
    assert not list(found)


def test_a_folder_that_is_gone_ends_the_tap(tmp_path: Path) -> None:
    """With one line."""
    watch = Watch(tmp_path)
    watch.folder.rmdir()
    with pytest.raises(TapSourceError, match=r"the folder .*files cannot be read: No such file or directory"):
        watch.step(0)


def test_a_link_to_a_folder_above_is_not_followed(tmp_path: Path) -> None:
    """Such a loop has no end; a link to a folder elsewhere is followed."""
    (tmp_path / "files" / "day").mkdir(parents=True)
    (tmp_path / "files" / "day" / "a").write_bytes(b"")
    (tmp_path / "files" / "day" / "loop").symlink_to(tmp_path / "files")
    (tmp_path / "files" / "self").symlink_to(".")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "b").write_bytes(b"")
    (tmp_path / "files" / "link").symlink_to(tmp_path / "else")
    folder = tmp_path / "files"
    assert list(list_folder(folder)) == [f"{folder}/day/a", f"{folder}/link/b"]


def test_a_state_forgets_files_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each start, and once it has doubled; the slices of all are kept, and the lock."""
    monkeypatch.setattr(done_files, "PRUNED_FROM", 4)
    state, slices = tmp_path / "state", {"s1": 7}
    done = DoneFiles(state, "plan")
    with done.lock():
        for number in range(20):
            place = tmp_path / f"{number}"
            place.write_bytes(b"x")
            found = place.stat()
            done.add(str(place), (found.st_size, found.st_mtime_ns), slices if number == 0 else {})
            if number < 19:
                place.unlink()
        assert len(state.read_text().splitlines()) <= 4
        with pytest.raises(TapSourceError, match="another import keeps its state in"):
            DoneFiles(state, "plan").lock().__enter__()
    done = DoneFiles(state, "plan")
    with done.lock():
        assert done.slices == slices
        assert done.knows_look(str(tmp_path / "19"))
        assert len(state.read_text().splitlines()) == 2


def test_a_folder_without_rights_is_one_clear_error(open_folder: Path) -> None:
    """Before anything of it is imported, also where it lies inside another."""
    folder = open_folder / "files"
    (folder / "day").mkdir(parents=True, mode=0o755)
    (folder / "day").chmod(0)
    with (
        without_root(),
        pytest.raises(TapSourceError, match=r"the folder .*files/day cannot be read: Permission denied"),
    ):
        list(list_folder(folder))
    (folder / "day").chmod(0o755)


def test_a_file_without_rights_is_a_fault(open_folder: Path) -> None:
    """Of which one line tells."""
    (open_folder / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    (open_folder / "a").chmod(0)
    spool = open_folder / "spool"
    with without_root():
        importer = Importer(PLAN, SpoolOutput(spool, is_replay=True))
        result = importer.import_file(str(open_folder / "a"), Event())
    assert "Permission denied" in result.fault
    assert not spool.exists()
