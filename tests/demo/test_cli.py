"""Tests of ``hopwatch demo`` as a command: what the flags become, and what is said of bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hopwatch.cli.main import main
from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.options import RunOptions, ServiceOptions


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Return the list of what the demo was asked for; it does not start."""
    wishes: list[RunOptions] = []

    def run(wish: RunOptions, console: Console) -> int:
        assert not console.stderr
        wishes.append(wish)
        return 1

    monkeypatch.setattr("hopwatch.cli.demo.run_demo", run)
    return wishes


def test_flags_become_wishes(asked: list[RunOptions]) -> None:
    """Every flag reaches the demo, and its exit code comes back."""
    flags = (
        "--minutes 3 --drop router=0.02 --drop norm=0.1 --filter ingest=0.1 --reject norm=0.2 --duplicate router=0.3"
    )
    flags += " --delay norm=2 --skew connector=-4 --kill norm@40 --probe-drop ingest=0.5 --rate 500 --seed 7"
    flags += " --kafka h:1,[::1]:2 --store sqlite:///x.db --heal-after 60 --alertmanager http://h:9093"
    flags += " --deploy norm@40=1.1"
    assert main(["demo", *flags.split(), "--no-dashboard", "--workdir", "there"]) == 1
    nodes = {
        "router": NodeFaults(drop_ratio=0.02, duplicate_ratio=0.3),
        "norm": NodeFaults(drop_ratio=0.1, reject_ratio=0.2, delay_s=2.0, deployed_from=20_000, version="1.1"),
        "ingest": NodeFaults(filter_ratio=0.1, probe_drop_ratio=0.5),
        "connector": NodeFaults(skew_s=-4.0),
    }
    nodes = {node: replace(faults, healed_from=30_000) for node, faults in nodes.items()}
    faults = Faults(7, nodes, (Kill("norm", 40.0),))
    urls = "h:1,[::1]:2", f"sqlite:///{Path.cwd()}/x.db", "", "http://h:9093"
    assert asked == [RunOptions(Path("there"), faults, 500.0, 180.0, *urls, dashboard_port=None)]


def test_without_flags_it_runs_healthy_until_ctrl_c(asked: list[RunOptions]) -> None:
    """2,000 messages a second, no faults, no end, a folder of its own."""
    main(["demo"])
    assert asked[0].faults == Faults()
    assert (asked[0].rate_per_s, asked[0].run_s) == (2000.0, None)
    assert asked[0].folder.parent == Path("var/demo")
    assert (asked[0].brokers, asked[0].store_url, asked[0].sink_url) == ("", "", "")
    assert asked[0].dashboard_port == 8501


def test_a_gate_breaks_one_event_in_a_hundred(asked: list[RunOptions]) -> None:
    """With ``--gate`` one event in a hundred is broken until the faults heal; without it there is no gate."""
    main(["demo", "--gate", "--drop", "router=0.02", "--heal-after", "10", "--workdir", "there"])
    main(["demo"])
    faults = {"gate": NodeFaults(reject_ratio=0.01), "router": NodeFaults(drop_ratio=0.02)}
    assert asked[0].faults.nodes == {node: replace(own, healed_from=20_000) for node, own in faults.items()}
    assert asked[0].gate_folder == Path.cwd() / "there"
    assert asked[1].gate_folder is None


def test_the_dashboard_listens_where_it_is_told_to(asked: list[RunOptions]) -> None:
    """On any port of this machine."""
    main(["demo", "--dashboard-port", "8502"])
    assert asked[0].dashboard_port == 8502


def test_what_another_monitor_watches_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spool's folder is found from anywhere; a topic is named as probes name it."""
    fed: list[str] = []
    monkeypatch.setattr("hopwatch.cli.demo.run_feed", lambda wish, _: fed.append(wish.sink_url))
    main(["demo", "--into", "spool:./there"])
    main(["demo", "--into", "kafka://h:1/t"])
    assert fed == [f"spool:{Path.cwd()}/there", "kafka://h:1/t"]


def test_kafka_without_an_address_starts_brokers(asked: list[RunOptions]) -> None:
    """The flag may stand anywhere; with an address there are none of its own."""
    main(["demo", "--kafka", "--rate", "100"])
    main(["demo", "--brokers", "3", "--kafka"])
    main(["demo", "--kafka", "h:1"])
    assert [(one.own_broker_count, one.brokers) for one in asked] == [(1, ""), (3, ""), (0, "h:1")]


def test_the_service_has_its_own_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """All reach it with a broker of its own, one malformed event in a hundred, and a quarter of the rate."""
    wishes: list[RunOptions] = []
    monkeypatch.setattr("hopwatch.cli.demo.run_service", lambda wish, _: wishes.append(wish))
    main(["demo", "--service", "--drop", "norm=0.1", "--kill", "deliver@40"])
    main(["demo", "--service", "--messages", "100", "--kills", "3", "--fail", "0.2", "--down", "3", "--kafka", "h:1"])
    first, second = wishes
    nodes = {"norm": NodeFaults(drop_ratio=0.1), "gate": NodeFaults(reject_ratio=0.01)}
    assert first.faults == Faults(0, nodes, (Kill("deliver", 40.0),))
    assert (first.own_broker_count, first.rate_per_s, first.service) == (1, 500.0, ServiceOptions())
    assert (second.own_broker_count, second.brokers, second.service) == (0, "h:1", ServiceOptions(0.2, 3.0, 100, 3))


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ("--fail 0.1", "hopwatch: --fail is for the service: add --service"),
        ("--messages 10", "hopwatch: --messages is for the service: add --service"),
        ("--service --gate", "hopwatch: --gate is a part of --service already: leave it out"),
        ("--service --kills 2", "hopwatch: --kills are spread over so many messages: add --messages, or name each"),
        ("--service --messages 9 --minutes 1", "hopwatch: --messages and --minutes both say when the run ends: keep"),
        ("--service --into spool:there", "hopwatch: --into and --service contradict each other: leave one of them"),
        ("--kafka --into spool:there", "hopwatch: --into and --kafka without an address contradict each other: leave"),
        ("--brokers 3", "hopwatch: --brokers is for brokers of the demo's own: add --kafka without an address"),
        ("--service --kafka h:1 --brokers 3", "hopwatch: --brokers is for brokers of the demo's own: add --kafka"),
        (
            "--service --drop gate=0.1",
            "hopwatch: --drop gate=0.1: no node is called 'gate'; the nodes are router, norm",
        ),
        ("--service --kill norma@3", "hopwatch: --kill norma@3: no node is called 'norma' (did you mean norm?)"),
        (
            "--drop rooter=0.02",
            "hopwatch: --drop rooter=0.02: no node is called 'rooter' (did you mean router?); the nodes",
        ),
        (
            "--minutes 1 --kill norm@60",
            "hopwatch: --kill norm@60: a node is killed after the start and before the end at 60 s",
        ),
        ("--minutes 0", "Invalid value for '--minutes'"),
        ("--minutes nan", "Invalid value for '--minutes'"),
        ("--rate 0", "Invalid value for '--rate'"),
        ("--rate nan", "Invalid value for '--rate'"),
        ("--seed x", "Invalid value for '--seed'"),
        ("--dorp norm=1", "No such option: --dorp"),
        (
            "--kafka broker",
            "hopwatch: --kafka: expected HOST:PORT, for example --kafka 127.0.0.1:9092, got 'broker'",
        ),
        ("--kafka broker:9092/topic", "--kafka: expected HOST:PORT, for example"),
        ("--into there", "hopwatch: --into: a transport is a spool, "),
        (
            "--into spool:there --store sqlite:///x.db",
            "hopwatch: --store is for the demo's own monitor, and with --into it has none",
        ),
        (
            "--into spool:there --alertmanager http://h:9093",
            "hopwatch: --alertmanager is for the demo's own monitor, and with --into it has none",
        ),
        (
            "--into spool:there --dashboard-port 8502",
            "hopwatch: --dashboard-port is for the demo's own monitor, and with --into it has none",
        ),
        (
            "--no-dashboard --dashboard-port 8502",
            "hopwatch: --no-dashboard and --dashboard-port contradict each other: keep one of them",
        ),
        ("--dashboard-port 0", "Invalid value for '--dashboard-port'"),
        ("--alertmanager h:9093", "hopwatch: --alertmanager: this is a URL such as"),
        (
            "--service --deploy norm@9=1.1",
            "hopwatch: --deploy is for the demo without --service: leave one of them out",
        ),
        ("--minutes 1 --deploy norm@9", "hopwatch: --deploy norm@9: expected NODE@SECONDS=VERSION"),
        ("--minutes 1 --heal-after 60", "hopwatch: --heal-after 60: faults end before the run does, at 60 s"),
        ("--store mysql://me:secret@h/d", "hopwatch: --store: a store is a SQLite file, "),
        ("--store mysql://me:secret@h/d", "; got 'mysql://me:***@h/d'"),
    ],
)
def test_a_bad_flag_is_exit_code_2(
    flags: str, text: str, asked: list[RunOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    """The reader learns which flag it was and what is allowed, before anything starts."""
    assert main(["demo", *flags.split()]) == 2
    assert asked == []
    out, err = capsys.readouterr()
    assert out == ""
    assert text in " ".join(err.split())


def test_a_folder_in_use_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo never writes into files of somebody else."""
    (tmp_path / "mine").touch()
    assert main(["demo", "--workdir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"hopwatch: {tmp_path} is not empty: every run wants a folder of its own")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
