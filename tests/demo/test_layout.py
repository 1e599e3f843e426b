"""Tests of where a run keeps its files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hopwatch.demo.configuration import SETTLE_S, TRANSIT_S
from hopwatch.demo.entrance.outlets import build_spool_outlets
from hopwatch.demo.layout import Layout, StoreInUseError, WorkdirError, check_store, create_layout, default_folder
from hopwatch.demo.stream import NODES, STREAM
from hopwatch.monitor import settings
from hopwatch.monitor.settings.alerting import LossRule
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from hopwatch.monitor.store import dialect, schema


def test_the_monitor_takes_the_configuration(tmp_path: Path) -> None:
    """The written configuration is valid, and names the places that the demo's processes use."""
    layout = create_layout(tmp_path / "run")
    chosen = settings.load(layout.config, flags={}, environ={})
    assert list(chosen.streams) == [STREAM]
    rules = chosen.streams[STREAM].rules
    assert tuple(rules.pathway.nodes) == NODES
    assert (rules.terms.transit_us, rules.terms.settle_us) == (TRANSIT_S * 1_000_000, SETTLE_S * 1_000_000)
    assert chosen.transport.url == f"spool:{layout.spool}"
    assert chosen.store.url == layout.store_url


def test_topic_and_store_may_be_elsewhere(tmp_path: Path) -> None:
    """Then the monitor is told of these, nothing is spooled, and nobody else reads what may hold a password."""
    topic, store = "kafka://h:1/t", 'postgresql+psycopg://me:a"b@h/d'
    layout = create_layout(tmp_path / "run", topic, store)
    chosen = settings.load(layout.config, flags={}, environ={})
    assert (chosen.transport.url, layout.sink_url) == (topic, topic)
    assert chosen.store.url == layout.store_url == store
    assert not layout.spool.exists()
    assert layout.config.stat().st_mode & 0o777 == 0o600


def test_an_alertmanager_is_told_when_one_is_named(tmp_path: Path) -> None:
    """The monitor's configuration has it as a channel, and ends an alert after one good window."""
    layout = create_layout(tmp_path / "run", alertmanager_url="http://127.0.0.1:9093")
    chosen = settings.load(layout.config, flags={}, environ={})
    (channel,), (rule,) = chosen.alerts.channels.values(), chosen.alerts.rules
    assert isinstance(channel, AlertmanagerChannel)
    assert channel.urls == ("http://127.0.0.1:9093",)
    assert isinstance(rule, LossRule)
    assert rule.keep_firing_for_us == 60_000_000


def test_a_gate_is_configured_where_there_is_one(tmp_path: Path) -> None:
    """A gate is the first node of the configuration, with places in the run and a rule that some events break."""
    layout = create_layout(tmp_path / "run", gate=build_spool_outlets(tmp_path / "run"))
    chosen = settings.load(layout.config, flags={}, environ={})
    assert layout.nodes == tuple(chosen.streams[STREAM].rules.pathway.nodes) == ("gate", *NODES)
    assert list(layout.truth_logs()) == list(layout.nodes)
    entrance = chosen.gate.streams[STREAM]
    assert entrance.to == f"spool:{tmp_path}/run/events"
    assert entrance.rejected_url(STREAM) == f"spool:{tmp_path}/run/rejected"
    assert [rule.display_name for rule in chosen.gate.rules] == ["range distance"]


def test_a_store_with_something_in_it_is_refused(tmp_path: Path) -> None:
    """Two runs in one store would mix; a store that is not there yet is empty, and none named is none."""
    url = f"sqlite:///{tmp_path}/store.db"
    check_store("")
    check_store(url)
    schema.prepare_store(dialect.create_engine(url))
    with pytest.raises(StoreInUseError) as raised:
        check_store(url)
    assert str(raised.value) == (
        f"the store {url} is not empty: every run wants one of its own, name an empty database"
    )
    assert raised.value.exit_code == 2


def test_every_process_finds_its_folder_there(tmp_path: Path) -> None:
    """The folders exist before the first process starts."""
    layout = create_layout(tmp_path / "new" / "run")
    assert layout == Layout(tmp_path / "new" / "run")
    for path in (
        layout.spool,
        layout.logs,
        layout.output,
        layout.truth_log("norm").parent,
        layout.untold_log("norm").parent,
    ):
        assert path.is_dir()


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    """Two runs in one folder would mix their truths; the reader learns what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(WorkdirError) as raised:
        create_layout(tmp_path)
    assert str(raised.value) == f"{tmp_path} is not empty: every run wants a folder of its own, name a new one"
    assert raised.value.exit_code == 2


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file where a folder should be is named, with the reason."""
    (tmp_path / "file").touch()
    with pytest.raises(WorkdirError) as raised:
        create_layout(tmp_path / "file" / "run")
    assert str(raised.value) == f"the demo cannot write to {tmp_path}/file/run: Not a directory; name another folder"


def test_every_run_has_a_folder_of_its_own() -> None:
    """The default folder is named by the second."""
    assert default_folder(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == Path("var/demo/2026-01-02T03-04-05Z")
    assert default_folder().parent == Path("var/demo")
