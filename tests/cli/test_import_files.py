"""Tests of ``hopwatch import`` and ``hopwatch tap files``: what they take, what they say, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.probes.contract.batch import BatchKind, Metrics, MetricsStamp
from tests.support.made_files import as_jsonl, look_at, made_rows
from tests.support.probe_host import ROOT, spooled
from tests.support.spool_traffic import rest

LAST_S = 60


def asked(tmp_path: Path, *more: str) -> list[str]:
    """Return the arguments of an import."""
    where = ["--stream", "flights", "--node", "file", "--sink", f"spool:{tmp_path}/spool"]
    return [*where, "--id", "id", "--time", "at", *more]


def test_an_import_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each file that is not whole, a last one, a JSON object, and 1; what could be read is there."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    (tmp_path / "files" / "b").write_bytes(as_jsonl(made_rows(5, 9)) + b"{\n")
    (tmp_path / "files" / "c").write_bytes(b"")
    assert main(["import", f"{tmp_path}/files", *asked(tmp_path, "--json")]) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert lines[:2] == [
        f"hopwatch import: {tmp_path}/files/b: rows that cannot be read: not_json 1; 4 rows of it count",
        f"hopwatch import: {tmp_path}/files/c: it is empty; 0 rows of it count",
    ]
    assert lines[2].startswith("hopwatch import: 9 rows of 3 files imported, ")
    assert lines[3].startswith(
        "hopwatch import: nobody knows whether these are all files, so what is not in them is UNKNOWN"
    )
    told = json.loads(out)
    assert (told["files"], told["imported"], told["observations"], told["bad"]) == (3, 3, 9, {"not_json": 1})
    assert told["faults"] == [
        {"file": f"{tmp_path}/files/b", "fault": "", "bad": {"not_json": 1}},
        {"file": f"{tmp_path}/files/c", "fault": "it is empty", "bad": {}},
    ]


def test_a_state_skips_what_is_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A start anew reads what it has not read; all whole ends with 0."""
    (tmp_path / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    arguments = ["import", f"{tmp_path}/a", *asked(tmp_path, "--state", f"{tmp_path}/state", "--bye")]
    assert main(arguments) == 0
    before = look_at(tmp_path / "spool")
    assert main(arguments) == 0
    assert "0 rows of 0 files imported, 0 a second, 1 files were through already" in capsys.readouterr().err
    assert before == look_at(tmp_path / "spool")


WRONG = [
    (["nothing*"], (), "there is no file '"),
    (["empty"], (), "/empty': names that begin with a dot or _ are not looked at"),
    (["a"], ("--id", "number"), "a: there is no column 'number', there are id, at"),
    (["a"], ("--server", "x", "--server-from", "y"), "name --server or --server-from"),
    (["a"], ("--server-from", "("), "--server-from is a regular expression, got '('"),
    (["a"], ("--format", "xml"), "--format is auto, jsonl, csv, parquet, avro, got 'xml'"),
    (["a"], ("--zone", "Mars"), "--zone is a name such as UTC or America/New_York, got 'Mars'"),
    (["a"], ("--arrived", "at", "--stamp", "in"), "--arrived and --departed say which stamps there are: leave --stamp"),
    (["a"], ("--slices", "15m"), "--slices is START/LENGTH"),
    (["a"], ("--servers", "s1"), "--servers names those whose --slices are missed, such as web-1,web-2; got 's1'"),
    (["a"], ("--slices", "2026-01-01T00:00Z/15m", "--servers", "\udcff"), "such as web-1,web-2; got '\\udcff'"),
    (["a"], ("--id", ""), "--id and --time name columns, got an empty name"),
    (["a"], ("--stream", "a b"), "--stream is 1 to 128 of the characters"),
    (["a"], ("--sink", "ftp://x"), "a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got 'ftp://x'"),
    (["ftp://x/y"], (), "ftp://x/y"),
]


@pytest.mark.parametrize(("places", "more", "told"), WRONG)
def test_what_cannot_be_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], places: list[str], more: tuple[str, ...], told: str
) -> None:
    """And exit code 2; a URL that nobody knows is a file that cannot be read."""
    (tmp_path / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    (tmp_path / "empty").mkdir()
    named = [place if "://" in place else f"{tmp_path}/{place}" for place in places]
    code = main(["import", *named, *asked(tmp_path, *more)])
    error = capsys.readouterr().err
    assert told in error
    assert code == (1 if "://" in places[0] else 2)
    if code != 1:
        assert len(error.splitlines()) == 1


COUNTS = b"host,minute,n,x,s,in,size\nweb-1,2026-11-21T10:00Z,5,1,2,out,9\nweb-1,2026-11-21T10:01Z,-5,1,2,out,9\n"
COUNT_FLAGS = ("--counted", "n", "--time", "minute", "--time-unit", "iso", "--server", "host")


def count_arguments(tmp_path: Path, *more: str) -> list[str]:
    """Return the arguments of an import of counts."""
    (tmp_path / "counts.csv").write_bytes(COUNTS)
    where = ("--stream", "flights", "--node", "packets", "--sink", f"spool:{tmp_path}/spool")
    return ["import", f"{tmp_path}/counts.csv", *where, *COUNT_FLAGS, *more]


def test_counts_are_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With all columns that there may be; a row that says nothing is a line, and exit code 1."""
    more = ("--counted-as", "in", "--id-xor", "x", "--id-sum", "s", "--bytes", "size", "--bye", "--json")
    assert main(count_arguments(tmp_path, *more, "--state", f"{tmp_path}/state")) == 1
    out, err = capsys.readouterr()
    told = "row 2: n is a whole number from 0 to 2^63 - 1, got '-5'"
    assert err.splitlines()[0] == (
        f"hopwatch import: {tmp_path}/counts.csv: rows that cannot be read: bad_count 1; {told}; 1 rows of it count"
    )
    assert json.loads(out)["faults"] == [{"file": f"{tmp_path}/counts.csv", "fault": told, "bad": {"bad_count": 1}}]
    (packet,) = [
        batch
        for batches in spooled(tmp_path / "spool").values()
        for batch in batches
        if batch.kind is BatchKind.METRICS
    ]
    assert packet.metrics == (Metrics(MetricsStamp.OUT, 5, 1, 2, 9),)
    before = look_at(tmp_path / "spool")
    assert main(["import", *count_arguments(tmp_path, *more, "--state", f"{tmp_path}/other")[1:]]) == 1
    assert look_at(tmp_path / "spool") == before


WRONG_COUNTS = [
    (("--id", "id"), "--counted reads counts, and no ids: leave --id, --id-as, --arrived and --departed out"),
    (("--id-as", "int"), "--counted reads counts, and no ids"),
    (("--stamp", "in", "--counted-as", "in"), "--counted-as says which stamps there are: leave --stamp out"),
    (("--id-xor", "x"), "a fingerprint has two halves: name both of --id-xor and --id-sum"),
    (("--bytes", ""), "--counted, --time and the like name columns, got an empty name"),
    (("--bytes", "other"), "there is no column 'other', there are host, minute, n, x, s, in, size"),
]


@pytest.mark.parametrize(("more", "told"), WRONG_COUNTS)
def test_flags_of_counts_that_cannot_be_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], told: str
) -> None:
    """And exit code 2."""
    assert main(count_arguments(tmp_path, *more)) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "name the column of the ids with --id, or that of counts with --counted"),
        (("--bytes", "size"), "--counted-as, --id-xor, --id-sum and --bytes go with --counted"),
    ],
)
def test_a_file_has_ids_or_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], told: str
) -> None:
    """One of both is named."""
    (tmp_path / "a").write_bytes(COUNTS)
    where = ("--stream", "flights", "--node", "packets", "--sink", f"spool:{tmp_path}/spool", "--time", "minute")
    assert main(["import", f"{tmp_path}/a", *where, *more]) == 2
    assert told in capsys.readouterr().err


def test_a_spool_that_cannot_be_written_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With 3."""
    (tmp_path / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    (tmp_path / "spool").write_text("a file")
    assert main(["import", f"{tmp_path}/a", *asked(tmp_path)]) == 3
    assert f"the spool {tmp_path}/spool cannot be written" in capsys.readouterr().err


def test_a_folder_is_watched_until_it_is_stopped(tmp_path: Path) -> None:
    """By a process of its own, which ends in order at a SIGTERM."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a").write_bytes(as_jsonl(made_rows(0, 5)))
    state = tmp_path / "state"
    more = ("--quiet", "0", "--state", str(state), "--json")
    command = [sys.executable, "-m", "hopwatch", "tap", "files", str(folder), *asked(tmp_path, *more)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in rest(LAST_S):
            if state.exists() and str(folder / "a") in state.read_text():
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LAST_S)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert json.loads(out) == {"files": 1, "observations": 5, "faults": 0}
    assert f"hopwatch tap: {folder}/a: 5 rows" in err.splitlines()
    assert look_at(tmp_path / "spool")
