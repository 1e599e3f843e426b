"""The generator: the same dials make the same directory, every fault leaves its mark, and the promise holds."""

import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path

from hypothesis import assume, given, settings

from tests.model.model import report
from tests.model.random_choices import LYING, Dials, Fault, dials
from tests.model.scenario import generate
from tests.support.examples import examples


def _content(spool_dir: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in spool_dir.rglob("*") if path.is_file()]
    return {str(path.relative_to(spool_dir)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_seed_makes_one_directory(tmp_path: Path) -> None:
    """Equal dials make equal bytes and times; other dials make others."""
    for name, seed in (("one", 11), ("same", 11), ("other", 12)):
        generate(seed, tmp_path / name)
    assert _content(tmp_path / "one") == _content(tmp_path / "same") != _content(tmp_path / "other")


def test_every_kind_of_verdict_and_account_turns_up() -> None:
    """A handful of seeds meets every verdict, every account, and broken records of each layer of the wire."""
    verdicts = {"SILENT", "IDLE", "LOSSY", "CLEAN", "UNKNOWN"}
    wanted = verdicts | {
        "unsupported",
        "duplicate_batches",
        "too_late",
        "implausible",
        "bad_crc",
        "torn_tail",
        "foreign_file",
        "body",
    }
    missing, met = wanted, Counter[str]()
    for seed in range(40):
        with tempfile.TemporaryDirectory() as directory:
            scenario = generate(seed, Path(directory))
            found = report(scenario.streams, scenario.spool_dir)
        met.update(window["verdict"] for stream in found["streams"] for window in stream["windows"])
        met.update({name: number for name, number in found["accounts"].items() if name != "set_aside"})
        met.update(found["accounts"]["set_aside"])
        missing = {name for name in wanted if not met[name]}
        if not missing:
            break
    assert missing == set()


def test_messages_wait_and_are_delivered_rejected_or_never_heard_of() -> None:
    """A handful of seeds with deferrals meets messages that wait still, that were lost waiting, and that came after."""
    met = Counter[str]()
    for seed in range(30):
        with tempfile.TemporaryDirectory() as directory:
            made = Dials(seed=seed, messages=60, windows=2, faults=frozenset({Fault.DEFERRED}))
            scenario = generate(made, Path(directory))
            found = report(scenario.streams, scenario.spool_dir)
        windows = [window for stream in found["streams"] for window in stream["windows"]]
        met["waits"] += sum(window["in_flight"] for window in windows)
        met["lost"] += sum(window["lost_lower"] for window in windows if window["deferred"])
        met["rejected"] += sum(window["rejected"] for window in windows)
        met["delivered"] += sum(window["delivered"] for window in windows)
        if all(met[name] for name in ("waits", "lost", "rejected", "delivered")):
            return
    assert min(met.values()) > 0, met


@settings(max_examples=examples(60))
@given(dials(without=LYING, grids_us=[1]))
def test_no_false_loss(thrown: Dials) -> None:
    """No more is surely lost than was lost, whatever happens to honest probes and their batches."""
    with tempfile.TemporaryDirectory() as directory:
        scenario = generate(thrown, Path(directory))
        found = report(scenario.streams, scenario.spool_dir)
    for stream in found["streams"]:
        truth = scenario.truth[stream["stream"]]
        for window in stream["windows"]:
            start_us = int(datetime.fromisoformat(window["window_start"]).timestamp()) * 1_000_000
            assert window["lost_lower"] <= len(truth.lost(start_us))
            where = stream["stream"], start_us
            for node in window["nodes"]:
                assert node["loss_lower"] <= scenario.count_lost(*where, node["node"])
            for counted in window["counts"]:
                assert counted["lost_before_lower"] <= scenario.count_lost_before(*where, counted["node"])


@settings(max_examples=examples(30))
@given(dials(without=frozenset(Fault) - {Fault.STOPPED, Fault.REPEATED, Fault.TWO_WAYS, Fault.SPLIT, Fault.COPIES}))
def test_no_loss_without_one(thrown: Dials) -> None:
    """A pipeline that loses nothing, its probes heard in time, has no loss anywhere, not even an unsure one."""
    with tempfile.TemporaryDirectory() as directory:
        scenario = generate(thrown, Path(directory))
        found = report(scenario.streams, scenario.spool_dir)
    assume(not found["accounts"]["too_late"])
    for stream in found["streams"]:
        assert not scenario.truth[stream["stream"]].lost_at
        assert not any(window["lost"] for window in stream["windows"])
