"""Tests of the spool as a source: what is read, what it is called, and what is said when it cannot be."""

from __future__ import annotations

import os
import pwd
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.row_kinds import FACTS_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.rows import JobRow
from hopwatch.monitor.spark.sources import spool
from tests.support.file_permissions import without_root
from tests.support.spool import STREAM_CONFIGS, observation_batch, write_segment

ODD = ("plain", "two words", "100%25", "a:b", "q?x#y", "ünï", "[x]{y}*", "back\\slash", "k=v")
HIDDEN = ("_under", ".dot")


def _aside(row: JobRow) -> SetAside:
    return SetAside.unpack(row.payload)


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("file:/var/spool/a b/1.seg", "/var/spool/a b/1.seg"),
        ("file:///var/spool/1.seg", "/var/spool/1.seg"),
        ("file:/var/100%25/1.seg", "/var/100%25/1.seg"),
        ("file:/var/q?x#y:z/1.seg", "/var/q?x#y:z/1.seg"),
        ("/var/file:/1.seg", "/var/file:/1.seg"),
    ],
)
def test_a_path_of_spark_names_a_file(path: str, file: str) -> None:
    """The scheme goes, and nothing is unescaped, because Spark escapes nothing."""
    assert spool.local_path(path) == file


def test_the_root_of_a_url_is_its_folder() -> None:
    """The root of a spool's URL is its path, absolute or relative."""
    assert (spool.root_folder("spool:/var/spool"), spool.root_folder("spool:var")) == (Path("/var/spool"), Path("var"))


def test_segments_are_found_in_any_depth_and_by_their_ending(tmp_path: Path) -> None:
    """Segments that are still open, and files of other kinds, are none."""
    wanted = [write_segment(tmp_path / name / "0000000000.seg") for name in ("a", "b/c", "_d")]
    for name in ("a/0000000001.open", "a/notes.txt", "b/x.seg.tmp", "core"):
        write_segment(tmp_path / name)
    assert spool.list_segments(tmp_path) == sorted(wanted)


def test_segments_of_a_folder_that_may_be_listed_but_not_entered_are_named(open_folder: Path) -> None:
    """Segments of a folder that cannot be entered are listed, and the others are, too."""
    wanted = [write_segment(open_folder / name / "0000000000.seg") for name in ("a", "b")]
    (open_folder / "a").chmod(0o644)
    with without_root():
        found = spool.list_segments(open_folder)
        spool.check_folder(open_folder)
        aside = [row for row in decode_segments(map(str, found), STREAM_CONFIGS) if row.kind == SET_ASIDE_ROW]
    (open_folder / "a").chmod(0o755)
    assert found == wanted
    assert (_aside(aside[0]).path, _aside(aside[0]).reason) == (str(wanted[0]), "unreadable_file")


@pytest.mark.parametrize(("user", "called"), [(None, ""), (3_999_999, "user 3999999")])
def test_who_may_write_to_a_spool_is_told(
    user: int | None, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of its owner, where it has one, and its mode."""
    tmp_path.chmod(0o2750)
    status = tmp_path.stat()
    user = status.st_uid if user is None else user
    seen = SimpleNamespace(st_uid=user, st_mode=status.st_mode)
    monkeypatch.setattr(Path, "stat", lambda _: seen)
    told = spool.describe_rights(tmp_path)
    called = called or pwd.getpwuid(user).pw_name
    assert told == f"it is of {called}, mode 2750: probes of other users need the right to write"


def test_a_spool_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The message says what was got and what to do."""
    with pytest.raises(TransportError) as caught:
        spool.check_folder(tmp_path / "none")
    assert str(caught.value) == (
        f"the spool {tmp_path}/none is a folder that probes write to, got nothing: "
        "start a probe with this sink, or correct [transport] url"
    )


def test_a_spool_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """A segment is not a spool."""
    with pytest.raises(TransportError, match="is a folder that probes write to, got a file: start a probe"):
        spool.check_folder(write_segment(tmp_path / "spool"))


def test_a_spool_that_cannot_be_read_is_refused(open_folder: Path) -> None:
    """By a user without rights on it."""
    (open_folder / "spool").mkdir(mode=0o311)
    with without_root(), pytest.raises(TransportError) as caught:
        spool.check_folder(open_folder / "spool")
    assert str(caught.value) == (
        f"the spool {open_folder}/spool cannot be read by this user: grant read and execute on it and its folders"
    )


def test_a_spool_that_cannot_be_written_is_refused_where_it_has_to_be(open_folder: Path) -> None:
    """Reading it is enough for --once; the monitor's pulse has to go through it."""
    (open_folder / "spool").mkdir(mode=0o555)
    with without_root():
        spool.check_folder(open_folder / "spool")
        with pytest.raises(TransportError) as caught:
            spool.check_folder(open_folder / "spool", is_written=True)
    assert str(caught.value) == (
        f"the spool {open_folder}/spool cannot be written by this user, "
        "so the monitor's pulse cannot go through it: grant write on it"
    )


@pytest.mark.parametrize("name", HIDDEN)
def test_a_folder_that_a_stream_would_look_past_is_refused(name: str, tmp_path: Path) -> None:
    """Its segments would be missed in silence; --once reads them."""
    write_segment(tmp_path / "plain" / "0000000000.seg")
    write_segment(tmp_path / name / "0000000000.seg")
    spool.check_folder(tmp_path)
    with pytest.raises(TransportError) as caught:
        spool.check_folder(tmp_path, is_written=True)
    assert str(caught.value) == (
        f"the spool {tmp_path} has segments in {name!r}, which a stream never looks into, "
        "because its name starts with _ or a dot: rename it"
    )


def test_a_spool_with_all_rights_passes(tmp_path: Path) -> None:
    """Nothing is said and nothing is changed."""
    spool.check_folder(tmp_path, is_written=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("root", ["plain", "sp [a]{b}*? %25#:"])
def test_a_batch_reads_every_segment_whatever_its_folder_is_called(
    root: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark alone would look past folders that start with _ or a dot, and take brackets for a pattern."""
    wanted = {str(write_segment(tmp_path / root / name / "0000000000.seg")) for name in (*ODD, *HIDDEN)}
    assert {spool.local_path(row.path) for row in spool.read_batch(spark, tmp_path / root).collect()} == wanted


def test_a_batch_reads_what_is_good_and_sets_aside_what_is_odd(spark: SparkSession, tmp_path: Path) -> None:
    """Links into nowhere, named pipes, files of others, names that are not UTF-8; a folder is a folder."""
    folder = tmp_path / "orders.a.probe.1790000000000000"
    good = {
        str(write_segment(folder / "0.seg", observation_batch([1]))),
        str(write_segment(folder / "x.seg" / "1.seg")),
    }
    (folder / "2.seg").symlink_to("gone")
    os.mkfifo(folder / "3.seg")
    (folder / "4.seg").write_bytes(b"a foreign file")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.seg")).write_bytes(b"HWSP1\n")
    paths = [spool.local_path(row.path) for row in spool.read_batch(spark, tmp_path).collect()]
    rows = list(decode_segments(paths, STREAM_CONFIGS))
    aside = {found.path: found.reason for row in rows if row.kind == SET_ASIDE_ROW for found in [_aside(row)]}
    assert aside == {
        f"{folder}/2.seg": "unreadable_file",
        f"{folder}/3.seg": "foreign_file",
        f"{folder}/4.seg": "foreign_file",
        f"{folder}/\\xff.seg": "unreadable_file",
    }
    assert set(paths) - aside.keys() == good
    assert [row.kind for row in rows].count(FACTS_ROW) == 1


def test_a_stream_goes_on_over_what_is_odd(spark: SparkSession, tmp_path: Path) -> None:
    """Odd files in a spool are set aside, and the stream reads the good ones."""
    folder = tmp_path / "spool" / "orders.a.probe.1790000000000000"
    good = {str(write_segment(folder / "0.seg")), str(write_segment(folder / "x.seg" / "1.seg"))}
    (folder / "2.seg").symlink_to("gone")
    os.mkfifo(folder / "3.seg")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.seg")).write_bytes(b"HWSP1\n")
    seen: list[str] = []
    stream = spool.read_stream(spark, tmp_path / "spool", bytes_a_trigger=1 << 20).writeStream
    stream = stream.foreachBatch(lambda batch, _: seen.extend(row.path for row in batch.collect()))
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    rows = list(decode_segments([spool.local_path(path) for path in seen], STREAM_CONFIGS))
    aside = {_aside(row).path for row in rows if row.kind == SET_ASIDE_ROW}
    assert {spool.local_path(path) for path in seen} - aside == good


def test_a_batch_of_an_empty_spool_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    """No segment yet is no error."""
    assert spool.read_batch(spark, tmp_path).collect() == []


@pytest.mark.parametrize("root", ["plain", "sp [a]{b}*? %25#", "co:lon"])
def test_a_stream_reads_segments_in_order_of_arrival(root: str, spark: SparkSession, tmp_path: Path) -> None:
    """Years old ones too, at most so many bytes a trigger, whatever the folders are called."""
    paths = [
        write_segment(tmp_path / root / name / "0000000000.seg", arrival_us=n * 10**15) for n, name in enumerate(ODD)
    ]
    seen: list[list[str]] = []
    stream = spool.read_stream(spark, tmp_path / root, bytes_a_trigger=len("HWSP1\n") * 5).writeStream
    stream = stream.foreachBatch(lambda batch, _: seen.append([row.path for row in batch.collect()]))
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert [{spool.local_path(path) for path in batch} for batch in seen] == [
        {str(path) for path in paths[:5]},
        {str(path) for path in paths[5:]},
    ]


def test_empty_folders_of_instances_that_ended_are_removed(tmp_path: Path) -> None:
    """Those that nothing has changed in for long; what has a segment stays, and so does what is no instance's."""
    names = {
        "orders.a.old.1790000000000000": True,
        "host/orders.a.old.1790000000000000": True,
        "-hopwatch.monitor.h-1.1790000000000000-0123456789ab": True,
        "orders.a.new.1790000000000000": False,
        "orders.a.kept.1790000000000000": False,
        "orders.a.open.1790000000000000": False,
        "host": False,
        "notes": False,
    }
    for name in names:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    write_segment(tmp_path / "orders.a.kept.1790000000000000" / "0.seg")
    (tmp_path / "orders.a.open.1790000000000000" / "1.open").touch()
    for name in names:
        os.utime(tmp_path / name, (0, 2 if name.startswith("orders.a.new") else 1))
    spool.remove_empty_folders(tmp_path, before_us=2_000_000)
    assert {name: not (tmp_path / name).exists() for name in names} == names


def test_folders_are_found_however_links_lead_around(tmp_path: Path) -> None:
    """Those of instances, and those above them; each is looked into once."""
    (tmp_path / "host" / "orders.a.p.1700000000000000").mkdir(parents=True)
    for name in ("around", "again"):
        (tmp_path / name).symlink_to(tmp_path)
        (tmp_path / "host" / name).symlink_to(tmp_path)
    names = [folder.name for folder in islice(spool.list_folders(tmp_path), 100)]
    assert len(names) < 20
    assert {"host", "orders.a.p.1700000000000000"} <= set(names)


def test_a_folder_that_goes_while_they_are_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody tidies up: the folders beside it are noted all the same."""
    names = [f"orders.a.p-{number}.1700000000000000" for number in range(4)]
    for name in names:
        (tmp_path / name).mkdir()
    real = os.scandir

    def tidying(folder: Path) -> Any:  # noqa: ANN401 - what the system gives
        entries = list(real(folder))
        (tmp_path / names[1]).rmdir()
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", tidying)
    assert {folder.name for folder in spool.list_folders(tmp_path)} == {names[0], names[2], names[3]}
