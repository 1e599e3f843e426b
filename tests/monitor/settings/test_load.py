"""Tests of where settings come from, and of what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hopwatch.monitor.errors import ConfigurationError, SettingsError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.settings import Settings, load

FILE = """
[transport]
url = "spool:./var/spool"
[store]
url = "sqlite:///./var/hopwatch.db"
[streams.orders]
path = ["ingest -> router", "router -> eu | us", "eu -> connector", "us -> connector"]
stamps = { router = "in" }
transit = "20s"
settle = "15s"
amend_for = "10m"
loss_alarm = 0.5
max_age = "2d"
shards = 4
"""


def _load(folder: Path, text: str = FILE, environ: dict[str, str] | None = None) -> Settings:
    file = folder / "hopwatch.toml"
    file.write_text(text)
    return load(file, flags={}, environ=environ or {})


def test_a_file_is_read(tmp_path: Path) -> None:
    """Every key arrives, durations in µs, the path as a pathway, all of it as the job's rules."""
    stream = _load(tmp_path).streams["orders"]
    assert stream.pathway.nodes == ("ingest", "router", "eu", "us", "connector")
    assert stream.pathway.stamps == ("both", "in", "both", "both", "both")
    assert stream.rules.terms == WindowPolicy(20_000_000, 15_000_000, 600_000_000, 172_800_000_000)
    assert (stream.rules.pathway, stream.rules.shards, stream.loss_alarm) == (stream.pathway, 4, 0.5)


def test_defaults_are_those_of_the_interface(tmp_path: Path) -> None:
    """A stream needs a path and no more."""
    settings = _load(tmp_path, '[streams.orders]\npath = "a -> b"')
    stream = settings.streams["orders"]
    assert stream.rules.terms == WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
    assert (stream.loss_alarm, stream.shards, stream.pathway.stamps) == (0.01, 1, ("both", "both"))
    assert (settings.monitor.trigger_us, settings.monitor.pulse_us) == (5_000_000, 3_000_000)


def test_without_a_file_the_defaults_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file the default places are below the current folder, and there is no stream."""
    monkeypatch.chdir(tmp_path)
    settings = load(None, flags={}, environ={})
    assert settings.transport.spool == tmp_path / "var/spool"
    assert settings.store.url == f"sqlite:///{tmp_path}/var/hopwatch.db"
    assert settings.monitor.workdir == tmp_path / "var/monitor"
    assert settings.streams == {}


def test_paths_of_the_file_and_defaults_are_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths in a file mean the same places from any current folder, also if its own name is relative."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hopwatch.toml").write_text('[transport]\nurl = "spool:../spool"\n')
    monkeypatch.chdir(tmp_path)
    settings = load(Path("etc/hopwatch.toml"), flags={}, environ={})
    assert settings.transport.spool == tmp_path / "etc/../spool"
    assert settings.store.url == f"sqlite:///{tmp_path}/etc/var/hopwatch.db"
    assert settings.monitor.workdir == tmp_path / "etc/var/monitor"


def test_paths_of_flags_and_environment_are_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths of flags and environment are relative to the current folder, and absolute paths stay as they are."""
    monkeypatch.chdir(tmp_path)
    settings = load(
        None,
        flags={"monitor": {"workdir": Path("work")}},
        environ={"HOPWATCH_TRANSPORT__URL": "spool:s", "HOPWATCH_STORE__URL": "sqlite:////data/h.db"},
    )
    assert settings.monitor.workdir == tmp_path / "work"
    assert settings.transport.spool == tmp_path / "s"
    assert settings.store.url == "sqlite:////data/h.db"


def test_flags_come_before_environment_before_file(tmp_path: Path) -> None:
    """Each layer overrides the keys that it has, and no others; a flag that is None was not given."""
    file = tmp_path / "hopwatch.toml"
    file.write_text('[monitor]\nworkdir = "/file"\ntrigger = "1s"\npulse = "2s"\n')
    environ = {"HOPWATCH_MONITOR__WORKDIR": "/environ", "HOPWATCH_MONITOR__TRIGGER": "4s"}
    monitor = load(file, flags={"monitor": {"workdir": "/flag", "trigger": None}}, environ=environ).monitor
    assert (monitor.workdir, monitor.trigger_us, monitor.pulse_us) == (Path("/flag"), 4_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("HOPWATCH_STREAMS__ORDERS__TRANSIT", "1m", "transit_us", 60_000_000),
        ("HOPWATCH_STREAMS__ORDERS__SHARDS", "8", "shards", 8),
        ("HOPWATCH_STREAMS__ORDERS__LOSS_ALARM", "0.25", "loss_alarm", 0.25),
        ("HOPWATCH_STREAMS__ORDERS__PATH", "a -> router", "path", ("a -> router",)),
        ("HOPWATCH_STREAMS__ORDERS__PATH", '["a -> b", "b -> router"]', "path", ("a -> b", "b -> router")),
        ("HOPWATCH_STREAMS__ORDERS__STAMPS__EU", "out", "stamps", {"router": "in", "eu": "out"}),
        ("HOPWATCH_STREAMS__ORDERS__STAMPS", '{us = "in"}', "stamps", {"router": "in", "us": "in"}),
    ],
)
def test_a_variable_names_its_key(tmp_path: Path, variable: str, value: str, field: str, expected: object) -> None:
    """Capitals and __ spell the way to a key; the value is TOML where it can be, and text where it cannot."""
    assert getattr(_load(tmp_path, environ={variable: value}).streams["orders"], field) == expected


def test_a_variable_finds_a_stream_that_it_cannot_spell(tmp_path: Path) -> None:
    """Names with small letters, dots and dashes are matched; a name that is not known is a new stream."""
    environ = {"HOPWATCH_STREAMS__EU_ORDERS_V2__SHARDS": "2", "HOPWATCH_STREAMS__NEW__PATH": "a"}
    streams = _load(tmp_path, '[streams."Eu-orders.v2"]\npath = "a"', environ).streams
    assert {name: stream.shards for name, stream in streams.items()} == {"Eu-orders.v2": 2, "new": 1}


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    """Those without __ belong to others: the probe's sink, a debug switch, what an orchestrator sets for a service."""
    others = {"HOPWATCH_SINK": "spool:x", "HOPWATCH_DEBUG": "1", "HOPWATCH_PORT": "tcp://h:1", "OTHER__KEY": "1"}
    assert _load(tmp_path, environ=others) == _load(tmp_path)


def test_a_deeper_variable_replaces_what_is_no_table(tmp_path: Path) -> None:
    """Of two variables that cannot both hold, the deeper one is taken, and refused for what it is."""
    environ = {"HOPWATCH_STORE__URL": "sqlite:////a", "HOPWATCH_STORE__URL__X": "1"}
    with pytest.raises(SettingsError, match=r"^environment HOPWATCH_STORE__URL: store\.url: .*got \{'x': 1\}$"):
        _load(tmp_path, environ=environ)


def test_a_value_of_several_toml_keys_is_text(tmp_path: Path) -> None:
    """A value cannot smuggle in a second key."""
    with pytest.raises(SettingsError, match=r"shards is a whole number from 1 to 256, got '4\\nother = 5'"):
        _load(tmp_path, environ={"HOPWATCH_STREAMS__ORDERS__SHARDS": "4\nother = 5"})


def test_this_process_s_environment_is_not_read_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is handed over counts, so that a test or an embedding program decides."""
    monkeypatch.setenv("HOPWATCH_STREAMS__ORDERS__SHARDS", "9")
    assert _load(tmp_path).streams["orders"].shards == 4


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    """Settings are frozen."""
    settings = _load(tmp_path)
    with pytest.raises(ValidationError, match="Instance is frozen"):
        settings.streams["orders"].shards = 0


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error names the file, the reason and what to do."""
    file = tmp_path / "none.toml"
    with pytest.raises(ConfigurationError) as refused:
        load(file, flags={}, environ={})
    told = f"the configuration {file} cannot be read: No such file or directory; name a file that is there"
    more = ", or let hopwatch init write one"
    assert str(refused.value) == f"{told} with --config{more}"
    with pytest.raises(ConfigurationError) as refused:
        load(file, flags={}, environ={}, named_by="")
    assert str(refused.value) == told + more


def test_of_a_file_that_is_there_and_cannot_be_read_no_other_is_offered(tmp_path: Path) -> None:
    """Nothing would be written there."""
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, flags={}, environ={})
    told = f"the configuration {tmp_path} cannot be read: Is a directory; name a file that is there with --config"
    assert str(refused.value) == told


@pytest.mark.parametrize("text", ['"2026-11-27T12:05:00Z"', "2026-11-27T12:05:00Z", '"2026-11-27 13:05+01:00"'])
def test_the_minute_of_a_version_is_a_time_of_toml_or_a_text(text: str, tmp_path: Path) -> None:
    """In any zone; without one there is none."""
    file = tmp_path / "hopwatch.toml"
    file.write_text(f'[streams.s]\npath = "a"\nvalid_from = {text}\n[streams.t]\npath = "a"\n')
    configs = load(file, flags={}, environ={}).stream_configs()
    assert (configs["s"].valid_from_us, configs["t"].valid_from_us) == (1_795_781_100_000_000, 0)
