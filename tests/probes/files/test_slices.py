"""Laws of slices: a slice that has not come is UNKNOWN in its span and nowhere else, and what was lost is named."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.importer import ImportPlan
from hopwatch.probes.files.slices import Slices, parse_slices
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.testing import EPOCH_US
from tests.model import model
from tests.support.examples import examples
from tests.support.made_files import MAPPING, Row, as_gzip, as_jsonl, as_parquet, import_files
from tests.support.micro_batches import run_once
from tests.support.model_comparison import comparable, prepared_store, rules_of

SLICE_US: Final = 300_000_000
SLICES: Final = 6
SERVERS: Final = ("s1", "s2")
START_US: Final = EPOCH_US // 60_000_000 * 60_000_000
SENT: Final = ImportPlan("flights", "server", FileMapping("id", "at", server="host"), bye=True)
STREAMS: Final = {"flights": {"path": ["server -> file"], "stamps": {"server": "out", "file": "in"}}}


def file_plan(server: str, *, bye: bool) -> ImportPlan:
    """Return the plan for the slices of one server."""
    return ImportPlan("flights", "file", MAPPING, Slices(START_US, SLICE_US), bye, server=server)


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
        chunks = []
        for server in SERVERS:
            for slice_ in range(SLICES):
                own = [row for row in kept if row["host"] == server and (row["at"] - START_US) // SLICE_US == slice_]
                place = folder / f"{server}-{slice_}"
                place.write_bytes(as_gzip(as_jsonl(own)) if slice_ % 2 else as_jsonl(own))
                chunks.append((server, slice_, place))
        chunks += dice.sample(chunks, 3)
        dice.shuffle(chunks)
        late = ("s1", dice.randrange(1, SLICES - 1))
        for server, slice_, place in chunks:
            if fate != "whole" and (server, slice_) == late:
                if fate == "cut":
                    (folder / "cut").write_bytes(place.read_bytes()[:-40])
                    import_files(spool, file_plan(server, bye=False), folder / "cut")
                continue
            import_files(spool, file_plan(server, bye=slice_ == SLICES - 1), place)
        if fate != "whole":
            before = windows_of(judge(folder, spool, "before.db"))
            of_slice = range(START_US + late[1] * SLICE_US, START_US + (late[1] + 1) * SLICE_US, 60_000_000)
            starts = {format_iso(start_us) for start_us in of_slice}
            for window in before:
                if window["window_start"] in starts:
                    # All may have been seen: then nothing is unknown.
                    assert window["verdict"] == ("UNKNOWN" if window["lost"] else "CLEAN")
                    assert window["lost_lower"] == 0
            assert sum(window["lost_lower"] for window in before) <= len(dropped)
            import_files(spool, file_plan(late[0], bye=False), folder / f"{late[0]}-{late[1]}")
        after = windows_of(judge(folder, spool, "after.db"))
    named = {lost for window in after for node in window["nodes"] for lost in node["lost_ids"]}
    assert named == {sent[number]["id"] for number in dropped}
    assert sum(window["lost_lower"] for window in after) == len(dropped)
    assert {window["verdict"] for window in after} <= {"CLEAN", "LOSSY", "IDLE"}


def test_the_end_is_open_without_a_bye(tmp_path: Path) -> None:
    """A message of the last minutes may be in a file that is still to come: it is not lost."""
    sent = sent_rows(Random(1))
    (tmp_path / "sent").write_bytes(as_parquet(sent))
    import_files(tmp_path / "spool", SENT, tmp_path / "sent")
    (tmp_path / "file").write_bytes(as_jsonl(sent[:-3]))
    import_files(tmp_path / "spool", ImportPlan("flights", "file", MAPPING), tmp_path / "file")
    windows = windows_of(judge(tmp_path, tmp_path / "spool", "open.db"))
    assert {window["verdict"] for window in windows if window["lost"]} == {"UNKNOWN"}
    assert {window["verdict"] for window in windows if not window["lost"]} == {"CLEAN"}
    assert sum(window["lost"] for window in windows) == 3
    assert sum(window["lost_lower"] for window in windows) == 0


def test_slices_are_a_start_and_a_length() -> None:
    """With a zone, in whole minutes."""
    assert parse_slices("2026-11-21T00:00Z/15m") == Slices(1_795_219_200_000_000, 900_000_000)
    assert parse_slices("2026-11-21T02:00+02:00/1h").length_us == 3_600_000_000
    for wrong in ("15m", "2026-11-21T00:00/15m", "2026-11-21T00:00:30Z/15m", "2026-11-21T00:00Z/15", "x/0m"):
        with pytest.raises(TapUsageError, match="--slices is START/LENGTH, such as 2026-11-21T00:00Z/15m"):
            parse_slices(wrong)
