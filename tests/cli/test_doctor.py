"""Tests of ``hopwatch doctor`` as a command; the checks have tests of their own."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hopwatch.cli.checks import Level
from hopwatch.cli.doctor import exit_code
from hopwatch.cli.main import main
from hopwatch.monitor import java
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.kernel.books import BatchRun, ClockOffset
from hopwatch.monitor.settings.alerting import AlertsSettings
from hopwatch.monitor.store import dialect, reader, writer
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from tests.support.spool import START_MS, at_us, make_batch, observation_batch, window_ms, write_segment
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches, one_of_ten_lost

CHECKS = ["config", "python", "java", "spark", "transport", "clocks", "store", "data", "alerts", "workdir"]
TOLD = """
[alerts.channels.ops]
kind = "webhook"
url = "https://example.invalid/hook"
"""
"""A way to people."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a configuration and a spool in it."""
    (tmp_path / "spool" / "orders.a.h-1.1790000000000000").mkdir(parents=True)
    (tmp_path / "hopwatch.toml").write_text(
        f'[transport]\nurl = "spool:spool"\n[streams.orders]\npath = "a -> b"\n{TOLD}'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a check on stdout, in the order in which things are stood on; that nothing was judged is a note."""
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    told = [line.split()[:2] for line in out.splitlines() if not line.startswith(" ")]
    assert told == [["NOTE" if check == "data" else "OK", check] for check in CHECKS]
    assert err == ""


def test_a_failed_check_is_told_with_advice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FAIL, what was got, and on the next line what to do; the clock of a spool that is none is not asked."""
    shutil.rmtree(place / "spool")
    (place / "spool").touch()
    assert main(["doctor", "--config", str(place / "hopwatch.toml")]) == 3
    lines = capsys.readouterr().out.splitlines()
    (failed,) = [number for number, line in enumerate(lines) if line.startswith("FAIL")]
    assert lines[failed].startswith(f"FAIL transport  the spool {place}/spool is a folder")
    assert lines[failed + 1].strip() == "start a probe with this sink, or correct [transport] url"
    assert not any("clocks" in line for line in lines)


def test_before_the_first_probe_nothing_has_failed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, with what to start; the clock of a spool that is not there is not asked."""
    shutil.rmtree(place / "spool")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (told,) = [number for number, line in enumerate(lines) if line.startswith("NOTE transport")]
    assert lines[told].startswith(f"NOTE transport  the spool {place}/spool is not there yet, and can be made; ")
    assert lines[told].endswith("; no probe has written to it, and nothing can be seen before one does")
    assert lines[told + 1].strip() == f"start one with the sink spool:{place}/spool"
    assert not any("clocks" in line for line in lines)
    assert not (place / "spool").exists()


@pytest.mark.usefixtures("place")
def test_findings_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One object with the same checks, and the same exit code."""
    monkeypatch.setattr(java, "find_executable", lambda: None)
    assert main(["doctor", "--json"]) == 3
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["check"] for check in checks] == CHECKS
    assert {check["level"] for check in checks} == {"OK", "NOTE", "FAIL"}
    assert set(checks[0]) == {"check", "level", "message", "advice"}
    assert "apt-get install openjdk-17-jre-headless" in checks[2]["advice"]


def test_without_a_configuration_the_defaults_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The places are those of a monitor that is started here; that one would not start, and what helps, is a note."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "var" / "spool").mkdir(parents=True)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "NOTE config     no hopwatch.toml in this folder: the defaults, and no streams, are checked",
        " " * 16 + "hopwatch init writes one; --config names another file",
    ]
    assert any(f"the spool {tmp_path}/var/spool can be read and written" in line for line in lines)
    assert not any(line[5:].startswith(("alerts", "data")) for line in lines)


def test_a_configuration_without_streams_is_a_note(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``hopwatch run`` would refuse it."""
    (place / "hopwatch.toml").write_text('[transport]\nurl = "spool:spool"\n')
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "NOTE config     as hopwatch.toml says, which declares no stream",
        " " * 16 + 'add a table [streams.NAME] with path = "a -> b -> c"',
    ]


DEAF = "no notification channel takes alerts: they are kept in the store and not sent"
CHANNELS = {
    "none": ("", "no notification channel is configured: alerts are kept in the store and not sent"),
    "off": (TOLD + "enabled = false\n", DEAF),
    "for none": (TOLD + "severities = []\n", DEAF),
}


@pytest.mark.parametrize(("channels", "told"), CHANNELS.values(), ids=CHANNELS)
def test_alerts_that_reach_nobody_are_a_note(
    channels: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prometheus may be what tells people: exit 0, with the table that is missing."""
    place = Workspace(tmp_path).configure(CONFIGURATION + channels).watch(*one_of_ten_lost())
    assert place.run("doctor") == 0
    lines = capsys.readouterr().out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.split()[1] == "alerts"]
    assert lines[at] == f"NOTE alerts     {told}"
    assert lines[at + 1].strip() == "add a table [alerts.channels.NAME]: docs/ALERTS.md"


def test_alerts_that_somebody_hears_are_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those who are told are named."""
    place = Workspace(tmp_path).configure(CONFIGURATION + TOLD).watch(*one_of_ten_lost())
    assert place.run("doctor") == 0
    assert (
        f"OK   alerts     rules in force: {len(AlertsSettings().active_rules)}, channels: ops\n"
        in capsys.readouterr().out
    )


def test_where_no_rule_is_in_force_nobody_need_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration without alerts is in order without channels."""
    place = Workspace(tmp_path).configure(CONFIGURATION + "[alerts]\nenabled = false\n").watch(*one_of_ten_lost())
    assert place.run("doctor") == 0
    assert "OK   alerts     no rule is in force: nothing is notified\n" in capsys.readouterr().out


def test_a_wrong_configuration_is_exit_code_2(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is checked before it is known what to check."""
    (place / "hopwatch.toml").write_text("[transport]\nurl = 1")
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hopwatch.toml:2: transport.url: ")


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ([], 0),
        ([Level.OK, Level.NOTE], 0),
        ([Level.OK, Level.WARN], 1),
        ([Level.FAIL, Level.WARN, Level.OK], 3),
    ],
)
def test_the_worst_level_is_the_exit_code(levels: list[Level], code: int) -> None:
    """A failure is a dependency that is down, a warning is a finding."""
    assert exit_code(levels) == code


def test_ids_that_change_on_the_way_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that calls messages by ids that no node before it knows is named, with stream and window; exit 1."""
    place = Workspace(tmp_path).configure()
    place.watch(observation_batch([1, 2]), observation_batch([101, 102], "b"), *closing_batches(seq=1))
    assert place.run("doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.split()[:2] == ["WARN", "ids"]]
    told = "b: none of the 2 messages of the probe probe-of-b was seen before b"
    assert lines[at].split(maxsplit=2)[2] == f"orders, window 2026-01-01T00:00:00Z: {told}"
    assert lines[at + 1].strip() == "give a message one id at all nodes: 7 and '7' are two ids, a UUID and its text too"


def test_ids_that_stay_are_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As far as the windows of the last hour say that was judged."""
    place = Workspace(tmp_path).configure()
    place.watch(observation_batch([1, 2]), observation_batch([1, 2], "b"), *closing_batches(seq=1))
    assert place.run("doctor") == 0
    told = "OK   ids        in the last hour that was judged no probe has ids that only it knows"
    assert told in capsys.readouterr().out


# What the data says


def test_where_no_monitor_has_worked_it_is_said(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A note: there is no store to look into."""
    assert workspace.run("doctor") == 0
    out = capsys.readouterr().out
    assert "NOTE data       no monitor has written here yet: nothing is known of any stream\n" in out
    assert f"\n{'':<16}start hopwatch run\n" in out
    assert "OK   ids" not in out


STILL = {
    "stuck": (
        {"watermark_us": str(at_us(400))},
        "WARN",
        1,
        "The monitor has read nothing that came after 2026-01-01T00:06:40Z (",
    ),
    "stopped": (
        {"watermark_us": str(at_us(400)), "stopped_us": str(SystemClock().now_us())},
        "NOTE",
        0,
        "The monitor was stopped at ",
    ),
    "stopped long ago": (
        {"watermark_us": str(at_us(400)), "stopped_us": str(at_us(401))},
        "WARN",
        1,
        "The monitor was stopped at 2026-01-01T00:06:41Z (",
    ),
}


@pytest.mark.parametrize(("kept", "level", "code", "told"), STILL.values(), ids=STILL)
def test_a_monitor_that_reads_no_more_is_told(
    kept: dict[str, str], level: str, code: int, told: str, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody should look, unless somebody has stopped it; of a store that was filled once there is nothing to say."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("doctor") == 0
    assert "monitor " not in capsys.readouterr().out
    engine = dialect.create_engine(workspace.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, {"query_id": "a-query"} | kept)
    assert workspace.run("doctor") == code
    lines = capsys.readouterr().out.splitlines()
    (found,) = [number for number, line in enumerate(lines) if line.split()[:2] == [level, "monitor"]]
    assert lines[found].split(maxsplit=2)[2].startswith(told)
    stalled = "docs/runbooks/monitor_stalled.md says how to tell, and what to do"
    assert lines[found + 1].strip() == ("hopwatch run starts it" if "stopped_us" in kept else stalled)


def test_a_change_of_the_configuration_that_is_not_in_force_is_told(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is wrong with it, and what to do."""
    workspace.watch(*one_of_ten_lost())
    kept = {"query_id": "a-query", "watermark_us": str(SystemClock().now_us()), "config_problem": "x.toml:1: no path"}
    engine = dialect.create_engine(workspace.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, kept)
    assert workspace.run("doctor") == 1
    told = capsys.readouterr().out
    assert "The last change of the monitor's configuration is not in force: x.toml:1: no path" in told
    assert "correct the file, or restart hopwatch run if it asks for that" in told


def test_where_nothing_was_read_it_is_said(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A note, and no word of order in what is not there."""
    workspace.watch()
    assert data_of(workspace, capsys) == [
        ("NOTE", "no window yet: no message of any stream was read, so that nothing is known of loss and lag")
    ]
    assert workspace.run("doctor") == 0


def test_a_stream_of_which_nothing_was_read_is_named(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream without windows is named in a note where others have windows."""
    workspace.configure(CONFIGURATION + '[streams.bills]\npath = "a -> b"\n').watch(*one_of_ten_lost())
    assert data_of(workspace, capsys) == [
        ("NOTE", "bills has no window: no message of it was read, so that nothing is known of its loss and lag")
    ]
    assert workspace.run("doctor") == 0


def data_of(place: Workspace, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Return level and message of what doctor says of the data; there is advice where all is not well."""
    place.run("doctor", "--json")
    found = [check for check in json.loads(capsys.readouterr().out)["checks"] if check["check"] == "data"]
    assert all(bool(check["advice"]) == (check["level"] != "OK") for check in found)
    return [(check["level"], check["message"]) for check in found]


def test_data_that_is_in_order_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Data of a stream is in order if nothing was set aside, dropped or out of place."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    told = "nothing was set aside or dropped in the last hour, and no message was seen out of place"
    assert data_of(place, capsys) == [("OK", told)]


MINUTES_OLD = window_ms(-10_000)
ODD: dict[str, tuple[list[Batch | bytes], list[str]]] = {
    "implausible": (
        [observation_batch([1]), observation_batch([2, 3, 4], seq=1, window_start_ms=MINUTES_OLD)],
        ["orders, node a: 3 observations have an event time that cannot be"],
    ),
    "all of it": (
        [make_batch(BatchKind.HEARTBEAT), observation_batch([2, 3, 4], seq=1, window_start_ms=MINUTES_OLD)],
        [
            "orders has no message in the last hour: all that came was set aside: 3 observations are implausible",
            "orders, node a: 3 observations have an event time that cannot be",
        ],
    ),
    "a misspelt node": (
        [observation_batch([1]), make_batch(BatchKind.HEARTBEAT, "bb")],
        [
            (
                "1 record of 'orders' names the node 'bb', which its path does not have: did you mean 'b'? Newest "
                "probe: 'probe-of-bb', started 2025-12-31T23:59:50Z; the last arrived 2026-01-01T00:06:40Z"
            ),
        ],
    ),
    "unreadable": ([observation_batch([1]), b"broken", b"broken too"], ["2 records cannot be counted: bad_marker"]),
    "dropped": (
        [observation_batch([1], drops=(Drop(START_MS, 3, "queue full"),))],
        ["orders, node a: probes dropped 3 observations"],
    ),
    "orphans": (
        [observation_batch([1]), observation_batch([1, 2], "b"), *closing_batches(seq=1)],
        ["orders, node b: 1 of 2 messages were seen at none before it"],
    ),
    "twice": (
        [observation_batch([1, 2]), observation_batch([1, 2], seq=1), *closing_batches(seq=2)],
        ["orders, node a: 4 stamps came 4 times more"],
    ),
    "a retry": ([observation_batch([1, 2, 3, 4]), observation_batch([1], seq=1), *closing_batches(seq=2)], []),
}


@pytest.mark.parametrize(("records", "expected"), ODD.values(), ids=ODD)
def test_what_the_data_says_is_told_with_what_to_do(
    records: list[Batch | bytes], expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times that cannot be, names that are not declared, what was unreadable or dropped, orphans, doubled stamps."""
    place = Workspace(tmp_path).configure().watch(*records)
    assert [message for level, message in data_of(place, capsys) if level == "WARN"] == expected
    assert place.run("doctor") == (1 if expected else 0)


@pytest.mark.parametrize(("off_us", "level", "code"), [(4_999, "OK", 0), (150_000, "NOTE", 0), (1_000_000, "WARN", 1)])
def test_a_clock_that_is_wrong_is_told(
    off_us: int, level: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its error; by a second or more it is a warning, and of a stream that is not declared it is none."""
    place = Workspace(tmp_path).configure().watch(observation_batch([1]))
    engine = dialect.create_engine(place.store_url)
    offset = ClockOffset(off_us, off_us + 4_000)
    with engine.execution_options(writes=True).begin() as connection:
        (book,) = reader.read_books(connection)
        reporting = BatchRun(0, 0, book.last_arrival_us, book.last_arrival_us)
        wrong = replace(book, runs=(reporting,), clock_offset=offset)
        books = [wrong, replace(wrong, stream="gone")]
        writer.write_changes(connection, writer.Changes(at_us(0), books=books))
    engine.dispose()
    told = data_of(place, capsys)
    assert [found for found, _ in told] == [level]
    if level != "OK":
        assert re.fullmatch(r"orders: the clock of probe-of-a at a is .* ± 2\.1 ms ahead: lags .*", told[0][1])
    assert place.run("doctor") == code


def test_of_many_names_some_are_told_and_the_others_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Strangers may make up any number of them."""
    records = [make_batch(BatchKind.HEARTBEAT, f"made-up-{number}") for number in range(9)]
    place = Workspace(tmp_path).configure().watch(observation_batch([1]), *records)
    told = data_of(place, capsys)
    assert (len(told), told[-1]) == (6, ("WARN", "and 4 more of this kind"))


def test_what_is_older_than_an_hour_is_told_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the arrivals in the store: what was mended then is of no interest."""
    place = Workspace(tmp_path).configure()
    old = write_segment(tmp_path / "spool" / "1" / "0000000000.seg", b"broken", arrival_us=at_us(-3_300))
    place.watch(observation_batch([1]), more=[old])
    assert data_of(place, capsys)[0][0] == "OK"
