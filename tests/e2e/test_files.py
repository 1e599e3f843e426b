"""Flights of 2013 in files of servers, chunk by chunk: late, twice, cut; what was dropped between is named."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hopwatch.cli.main import main
from hopwatch.demo.records import find_archive
from tests.support.made_files import as_avro, as_csv, as_gzip, as_jsonl

RUN: Final = (sys.executable, "-m", "hopwatch")
FLIGHTS: Final = 24_000
SPAN_MS: Final = 7_200_000
SLICE_MS: Final = 900_000
START_MS: Final = 1_370_044_800_000
"""2013-06-01T00:00Z: two hours of it have all the flights."""
DROPPED: Final = 37
MIN_FLIGHTS: Final = 400
"""Flights of a carrier that has a server of its own: each has some in every slice."""
FORMATS: Final = (as_jsonl, as_csv, lambda rows: as_gzip(as_jsonl(rows)), as_avro)


def read_flights() -> list[dict[str, Any]]:
    """Return flights as messages of the servers of their carriers."""
    with zipfile.ZipFile(find_archive()) as archive:
        table = pacsv.read_csv(io.BytesIO(archive.read("flights.csv"))).slice(0, FLIGHTS)
    parts = [table.column(name).to_pylist() for name in ("carrier", "flight", "tailnum")]
    flights_of = Counter(parts[0])
    return [
        {
            "id": f"{carrier}{flight}-{tail}-{number}",
            "at": START_MS + number * SPAN_MS // FLIGHTS,
            "server": f"server-{carrier.lower()}" if flights_of[carrier] >= MIN_FLIGHTS else "server-others",
        }
        for number, (carrier, flight, tail) in enumerate(zip(*parts, strict=True))
    ]


def hopwatch(*arguments: str) -> None:
    """Run a command here, which ends well."""
    assert main(list(arguments)) == 0, arguments


def test_the_37_that_were_dropped_are_named(tmp_path: Path) -> None:
    """Of chunks of 15 minutes in four formats, in random order: exactly these, and all is known."""
    dice, sent = Random(2013), read_flights()
    dropped = set(dice.sample(range(FLIGHTS), DROPPED))
    pq.write_table(pa.Table.from_pylist(sent), tmp_path / "sent.parquet")
    spool, chunks = tmp_path / "spool", tmp_path / "chunks"
    common = ("--stream", "flights", "--id", "id", "--time", "at", "--time-unit", "ms", "--sink", f"spool:{spool}")
    hopwatch(
        "import",
        str(tmp_path / "sent.parquet"),
        "--node",
        "server",
        "--stamp",
        "out",
        "--server",
        "server",
        "--bye",
        *common,
    )
    by_chunk: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for number, row in enumerate(sent):
        own = by_chunk.setdefault((row["server"], (row["at"] - START_MS) // SLICE_MS), [])
        if number not in dropped:
            own.append({"id": row["id"], "at": row["at"]})
    places = []
    for place, ((server, slice_), rows) in enumerate(sorted(by_chunk.items())):
        if not rows:
            continue
        (chunks / server).mkdir(parents=True, exist_ok=True)
        path = chunks / server / f"{slice_}"
        path.write_bytes(FORMATS[place % len(FORMATS)](rows))
        places.append(path)
    dice.shuffle(places)
    late, twice, cut = places[:10], places[10:14], next(path for path in places[20:] if path.read_bytes()[:1] == b"{")
    in_time = [path for path in places if path not in late]
    for path in twice:
        (path.parent / f"{path.name}-again").write_bytes(path.read_bytes())
        in_time.append(path.parent / f"{path.name}-again")
    begun = cut.parent / f"{cut.name}-cut"
    begun.write_bytes(cut.read_bytes()[:-30])
    flags = ("--node", "file", "--slices", "2013-06-01T00:00Z/15m", "--server-from", "(server-[a-z0-9]+)/", *common)
    assert main(["import", str(begun), *flags]) == 1
    hopwatch("import", *map(str, in_time), *flags)
    hopwatch("import", *map(str, late), *flags)
    last = [path for path in places if path.name == "7"]
    hopwatch("import", *map(str, last), *flags, "--bye")
    config = tmp_path / "hopwatch.toml"
    stream = '[streams.flights]\npath = "server -> file"\nstamps = { server = "out", file = "in" }\n'
    config.write_text(f'[transport]\nurl = "spool:./spool"\n{stream}')
    subprocess.run([*RUN, "run", "--config", str(config), "--once"], check=True, capture_output=True)
    told = subprocess.run([*RUN, "report", "--config", str(config), "--json"], check=True, capture_output=True)
    (flights,) = json.loads(told.stdout)["streams"]
    windows = flights["windows"]
    named = {lost for window in windows for node in window["nodes"] for lost in node["lost_ids"]}
    assert named == {sent[number]["id"] for number in dropped}
    assert sum(window["lost_lower"] for window in windows) == sum(window["lost_upper"] for window in windows) == DROPPED
    assert sum(window["known"] for window in windows) == FLIGHTS
    assert {window["verdict"] for window in windows} <= {"CLEAN", "LOSSY", "IDLE"}
