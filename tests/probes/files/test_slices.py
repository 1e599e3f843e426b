"""Laws of slices: a slice that has not come is UNKNOWN in its span and nowhere else, and what was lost is named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.files.done_files import DoneFiles
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.importer import Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.slices import Slices, parse_slices
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.testing import EPOCH_US
from tests.model import model
from tests.support.examples import examples
from tests.support.made_files import MAPPING, Row, as_gzip, as_jsonl, as_parquet, import_files, look_at
from tests.support.micro_batches import run_once
from tests.support.model_comparison import comparable, prepared_store, rules_of
from tests.support.probe_host import spooled

SLICE_US: Final = 300_000_000
SLICES: Final = 6
SERVERS: Final = ("s1", "s2")
START_US: Final = EPOCH_US // 60_000_000 * 60_000_000
SENT: Final = ImportPlan("flights", "server", FileMapping("id", "at", server="host"), bye=True)
STREAMS: Final = {"flights": {"path": ["server -> file"], "stamps": {"server": "out", "file": "in"}}}


SLICED: Final = ImportPlan(
    "flights", "file", MAPPING, Slices(START_US, SLICE_US), bye=True, server_pattern=re.compile(r"(s\d)-\d")
)


def import_slices(spool: Path, plan: ImportPlan, places: Iterable[Path]) -> None:
    """Import files of slices in one run, to its end."""
    importer = Importer(plan, SpoolOutput(spool, is_replay=True))
    for place in places:
        importer.import_file(str(place), Event())
    importer.finish()


def sent_rows(dice: Random) -> list[Row]:
    """Return what the servers sent, in order of time."""
    count = 400
    step_us = SLICES * SLICE_US // count
    return [
        {"id": f"f{number}", "at": START_US + number * step_us, "host": dice.choice(SERVERS)} for number in range(count)
    ]


def judge(folder: Path, spool: Path, name: str) -> dict[str, Any]:
    """Return the report of what is in a spool, held against the slow model."""
    rules = rules_of(folder, STREAMS)
    engine = prepared_store(folder, name)
    run_once(engine, rules, sorted(spool.rglob("*.seg")), spool)
    found = reader.read_report(engine)
    assert comparable(found) == comparable(model.report(STREAMS, spool))
    engine.dispose()
    return found


def windows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the windows of the only stream."""
    (stream,) = report["streams"]
    return list(stream["windows"])


@settings(max_examples=examples(24))
@given(st.integers(0, 2**32), st.sampled_from(["whole", "late", "cut"]))
def test_what_was_dropped_is_named_and_nothing_else(seed: int, fate: str) -> None:
    """Slices in any order, some twice; one that is late, or cut at first, ends as if it had come in time."""
    dice = Random(seed)
    sent = sent_rows(dice)
    dropped = set(dice.sample(range(len(sent)), 5))
    with TemporaryDirectory() as made:
        folder, spool = Path(made), Path(made) / "spool"
        (folder / "sent").write_bytes(as_parquet(sent))
        import_files(spool, SENT, folder / "sent")
        kept = [row for number, row in enumerate(sent) if number not in dropped]
        chunks: list[Path] = []
        for server in SERVERS:
            for slice_ in range(SLICES):
                own = [row for row in kept if row["host"] == server and (row["at"] - START_US) // SLICE_US == slice_]
                place = folder / f"{server}-{slice_}"
                place.write_bytes(as_gzip(as_jsonl(own)) if slice_ % 2 else as_jsonl(own))
                chunks.append(place)
        chunks += dice.sample(chunks, 3)
        dice.shuffle(chunks)
        if fate == "whole":
            import_slices(spool, SLICED, chunks)
        else:
            number = dice.randrange(SLICES)
            late = folder / f"s1-{number}"
            in_time = [place for place in chunks if place != late]
            if fate == "cut":
                (folder / f"s1-{number}-cut").write_bytes(late.read_bytes()[:-40])
                in_time.append(folder / f"s1-{number}-cut")
            import_slices(spool, SLICED, in_time)
            before = windows_of(judge(folder, spool, "before.db"))
            of_slice = range(START_US + number * SLICE_US, START_US + (number + 1) * SLICE_US, 60_000_000)
            starts = {format_iso(start_us) for start_us in of_slice}
            for window in before:
                if window["window_start"] in starts:
                    # All may have been seen: then nothing is unknown.
                    assert window["verdict"] == ("UNKNOWN" if window["lost"] else "CLEAN")
                    assert window["lost_lower"] == 0
            assert sum(window["lost_lower"] for window in before) <= len(dropped)
            import_slices(spool, SLICED, [late])
        after = windows_of(judge(folder, spool, "after.db"))
    named = {lost for window in after for node in window["nodes"] for lost in node["lost_ids"]}
    assert named == {sent[number]["id"] for number in dropped}
    assert sum(window["lost_lower"] for window in after) == len(dropped)
    assert {window["verdict"] for window in after} <= {"CLEAN", "LOSSY", "IDLE"}


def test_nothing_is_surely_lost_without_a_bye(tmp_path: Path) -> None:
    """Nobody knows of a file that is not there: what is missing, wherever, may be in it."""
    sent = sent_rows(Random(1))
    (tmp_path / "sent").write_bytes(as_parquet(sent))
    import_files(tmp_path / "spool", SENT, tmp_path / "sent")
    for number, rows in enumerate((sent[:150], sent[160:-3])):
        (tmp_path / f"file-{number}").write_bytes(as_jsonl(rows))
    files = [tmp_path / f"file-{number}" for number in range(2)]
    import_files(tmp_path / "spool", ImportPlan("flights", "file", MAPPING), *files)
    windows = windows_of(judge(tmp_path, tmp_path / "spool", "open.db"))
    assert {window["verdict"] for window in windows if window["lost"]} == {"UNKNOWN"}
    assert {window["verdict"] for window in windows if not window["lost"]} == {"CLEAN"}
    assert (sum(window["lost"] for window in windows), sum(window["lost_lower"] for window in windows)) == (13, 0)
    import_files(tmp_path / "spool", ImportPlan("flights", "file", MAPPING, bye=True), *files)
    windows = windows_of(judge(tmp_path, tmp_path / "spool", "closed.db"))
    assert sum(window["lost_lower"] for window in windows) == 13


def test_a_file_that_is_cut_holds_back_the_byes_of_all(tmp_path: Path) -> None:
    """Another server's file would speak for the time that is missing; once it comes whole, all is known."""
    sent, spool, plan = sent_rows(Random(1)), tmp_path / "spool", ImportPlan("flights", "file", MAPPING, bye=True)
    (tmp_path / "sent").write_bytes(as_parquet(sent))
    import_files(spool, SENT, tmp_path / "sent")
    first, second = ([row for row in sent[:-3] if row["host"] == server] for server in SERVERS)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.write_bytes(as_jsonl(first))
    cut.write_bytes(as_jsonl(second)[:2_000])
    import_files(spool, plan, whole, cut)
    before = windows_of(judge(tmp_path, spool, "before.db"))
    assert (sum(window["lost"] for window in before) > 50, sum(window["lost_lower"] for window in before)) == (True, 0)
    cut.write_bytes(as_jsonl(second))
    import_files(spool, plan, whole, cut)
    assert sum(window["lost_lower"] for window in windows_of(judge(tmp_path, spool, "after.db"))) == 3


def test_the_byes_of_files_outlive_a_restart(tmp_path: Path) -> None:
    """By the state: who goes on reads no file again, and says the same."""
    plan, places = replace(SLICED, slices=None), [tmp_path / "s1-0", tmp_path / "s2-0"]
    for number, place in enumerate(places):
        place.write_bytes(as_jsonl([{"id": number, "at": START_US}]))
    import_files(tmp_path / "whole", plan, *places)
    (tmp_path / "spool").mkdir()
    for place in places:
        done = DoneFiles(tmp_path / "state", "plan")
        with done.lock():
            importer = Importer(plan, SpoolOutput(tmp_path / "spool", is_replay=True))
            importer.resume(done.slices, done.ends)
            result = importer.import_file(str(place), Event())
            done.add(result.name, result.look, result.slices, result.ends)
    assert look_at(tmp_path / "spool") != look_at(tmp_path / "whole")
    done = DoneFiles(tmp_path / "state", "plan")
    with done.lock():
        importer = Importer(plan, SpoolOutput(tmp_path / "spool", is_replay=True))
        importer.resume(done.slices, done.ends)
        importer.finish()
    assert look_at(tmp_path / "spool") == look_at(tmp_path / "whole")


@pytest.mark.parametrize("is_named", [True, False])
def test_a_server_without_a_file_is_missed_if_it_is_named(tmp_path: Path, is_named: bool) -> None:  # noqa: FBT001 - a case
    """By --servers: all of its messages are unknown; nobody knows of one that nobody names."""
    sent = sent_rows(Random(1))
    (tmp_path / "sent").write_bytes(as_parquet(sent))
    import_files(tmp_path / "spool", SENT, tmp_path / "sent")
    places = []
    for slice_ in range(SLICES):
        own = [row for row in sent if row["host"] == "s2" and (row["at"] - START_US) // SLICE_US == slice_]
        places.append(tmp_path / f"s2-{slice_}")
        places[-1].write_bytes(as_jsonl(own))
    import_slices(tmp_path / "spool", replace(SLICED, servers=SERVERS if is_named else ()), places)
    windows = windows_of(judge(tmp_path, tmp_path / "spool", "named.db"))
    assert {window["verdict"] for window in windows} == {"UNKNOWN" if is_named else "LOSSY"}


def test_no_account_ends_while_a_file_has_no_place(tmp_path: Path) -> None:
    """An empty file may be the last slice of its server."""
    (tmp_path / "spool").mkdir()
    whole, empty = tmp_path / "s1-0", tmp_path / "s1-1"
    whole.write_bytes(as_jsonl([{"id": "a", "at": START_US}]))
    empty.write_bytes(b"")
    import_slices(tmp_path / "spool", SLICED, [whole, empty])
    assert not any(batch.kind is BatchKind.BYE for batch in account_of(tmp_path / "spool"))
    import_slices(tmp_path / "spool", SLICED, [whole])
    assert account_of(tmp_path / "spool")[-1].kind is BatchKind.BYE


def account_of(spool: Path) -> list[Batch]:
    """Return the batches of the account of the first server, in their order."""
    (found,) = (batches for name, batches in spooled(spool).items() if name.split(".")[2] == "s1")
    return sorted(found, key=lambda batch: batch.seq)


def test_the_accounts_of_servers_outlive_a_restart(tmp_path: Path) -> None:
    """By the state: a server whose files do not come any more is missed by the next process, too."""
    early, late = tmp_path / "s1-0", tmp_path / "s2-5"
    (tmp_path / "spool").mkdir()
    early.write_bytes(as_jsonl([{"id": "a", "at": START_US}]))
    late.write_bytes(as_jsonl([{"id": "b", "at": START_US + 5 * SLICE_US}]))
    for place in (early, late):
        done = DoneFiles(tmp_path / "state", "plan")
        with done.lock():
            importer = Importer(SLICED, SpoolOutput(tmp_path / "spool", is_replay=True))
            importer.resume(done.slices)
            result = importer.import_file(str(place), Event())
            done.add(result.name, result.look, result.slices)
    numbers = {path.parent.name.split(".")[2]: int(path.stem) for path in sorted((tmp_path / "spool").rglob("*.seg"))}
    assert (numbers["s1"], numbers["s2"]) == (12, 11)


def test_slices_are_a_start_and_a_length() -> None:
    """With a zone, in whole minutes."""
    assert parse_slices("2026-11-21T00:00Z/15m") == Slices(1_795_219_200_000_000, 900_000_000)
    assert parse_slices("2026-11-21T02:00+02:00/1h").length_us == 3_600_000_000
    for wrong in ("15m", "2026-11-21T00:00/15m", "2026-11-21T00:00:30Z/15m", "2026-11-21T00:00Z/15", "x/0m"):
        with pytest.raises(TapUsageError, match="--slices is START/LENGTH, such as 2026-11-21T00:00Z/15m"):
            parse_slices(wrong)
