"""Tests of ``hopwatch pathway check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopwatch.cli.main import main

GOOD = """
[streams.orders]
path = ["ingest -> router", "router -> eu | us", "eu -> sink & audit", "us -> sink"]
stamps = { router = "in" }
[streams.single]
path = "alone"
"""
DRAWN = """\
orders
  ingest -> router
  router -> eu | us   stamps in only
  eu     -+-> sink
          +-> audit
  us     -> sink
  sink   (end)
  audit  (end)
single
  alone (end)
"""
BAD = """
[streams.orders]
path = "a -> b -> a"
transit = "soon"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the configuration of a test goes."""
    return tmp_path / "hopwatch.toml"


def test_a_good_configuration_is_drawn(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a node in pathway order, | for one of several; what takes all is a prong of a fork."""
    file.write_text(GOOD)
    assert main(["pathway", "check", str(file)]) == 0
    assert capsys.readouterr() == (DRAWN, "")


def test_a_good_configuration_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes, sides and targets, one list of targets an arrow; no problems."""
    file.write_text(GOOD)
    assert main(["pathway", "check", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["problems"]) == (str(file), [])
    assert [stream["stream"] for stream in told["streams"]] == ["orders", "single"]
    assert told["streams"][0]["nodes"][1:3] == [
        {"node": "router", "stamps": "in", "targets": [["eu", "us"]]},
        {"node": "eu", "stamps": "both", "targets": [["sink"], ["audit"]]},
    ]


def test_a_node_that_counts_is_drawn_beside_the_ids(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arrows go past it, and it stands below with its neighbours; in JSON too."""
    file.write_text('[streams.orders]\npath = "a -> packets -> b"\nstamps = { packets = "count" }\n')
    assert main(["pathway", "check", str(file)]) == 0
    drawn = "orders\n  a       -> b\n  b       (end)\n  packets counts only, beside a and b\n"
    assert capsys.readouterr().out == drawn
    assert main(["pathway", "check", str(file), "--json"]) == 0
    counting = json.loads(capsys.readouterr().out)["streams"][0]["counting"]
    assert counting == [{"node": "packets", "stamps": "count", "before": "a", "behind": "b"}]


def test_nodes_that_cannot_count_together_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each alone would do."""
    file.write_text('[streams.orders]\npath = "a -> b"\nstamps = { a = "count", b = "count" }\n')
    assert main(["pathway", "check", str(file)]) == 2
    assert "some node of a path stamps ids, got a, b, which all count" in capsys.readouterr().err


def test_all_problems_are_told_with_line_and_key(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a problem on stderr, file and line first; exit code 2."""
    file.write_text(BAD)
    assert main(["pathway", "check", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    cycle, duration = err.splitlines()
    assert cycle == f"{file}:3: streams.orders.path: a path leads on and never back, got the cycle a -> b -> a"
    assert duration.startswith(f"{file}:4: streams.orders.transit: a duration is a whole number with ms, s, m, h or d")


def test_problems_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same problems as objects on stdout, still exit code 2."""
    file.write_text(BAD)
    assert main(["pathway", "check", str(file), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["streams"] == []
    assert [(problem["source"], problem["line"], problem["key"]) for problem in told["problems"]] == [
        (str(file), 3, "streams.orders.path"),
        (str(file), 4, "streams.orders.transit"),
    ]


def test_a_configuration_without_streams_is_a_problem(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to watch, and the message shows what to add."""
    file.write_text("")
    assert main(["pathway", "check", str(file)]) == 2
    told = 'streams: no stream is declared: add a table [streams.NAME] with path = "a -> b -> c"'
    assert capsys.readouterr().err == f"{file}: {told}\n"


def test_variables_count(file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables are checked as the monitor would use them."""
    file.write_text(GOOD)
    monkeypatch.setenv("HOPWATCH_STREAMS__ORDERS__SHARDS", "0")
    assert main(["pathway", "check", str(file)]) == 2
    assert capsys.readouterr().err == (
        "environment HOPWATCH_STREAMS__ORDERS__SHARDS: streams.orders.shards: "
        "shards is a whole number from 1 to 256, got 0\n"
    )


def test_a_file_that_is_not_there_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and one line."""
    assert main(["pathway", "check", str(file)]) == 2
    what = f"hopwatch: the configuration {file} cannot be read: No such file or directory"
    told = f"{what}; name a file that is there, or let hopwatch init write one\n"
    assert capsys.readouterr().err == told
