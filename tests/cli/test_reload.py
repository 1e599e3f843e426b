"""Tests of the reload of a configuration: what of a change is taken up, and why another one is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hopwatch.cli.reload import ConfigReload
from hopwatch.monitor.settings import load

TEXT = """\
[store]
url = "sqlite:///hopwatch.db"
[streams.orders]
path = "a -> b"
[gate.streams.orders]
to = "spool:./x"
node = "a"
"""


@pytest.fixture
def reload(tmp_path: Path) -> ConfigReload:
    """Return the reload of a file as it was when the monitor was started."""
    config = tmp_path / "hopwatch.toml"
    config.write_text(TEXT)
    flags = {"monitor": {"workdir": str(tmp_path), "master": None}}
    return ConfigReload(config, flags, load(config, flags=flags, environ={}))


def rewrite(reload: ConfigReload, text: str) -> bool | None:
    """Write the file, and let it settle; return what comes of it."""
    before_ns = reload.config.stat().st_mtime_ns if reload.config.exists() else 0
    reload.config.write_text(text)
    os.utime(reload.config, ns=(before_ns + 1_000, before_ns + 1_000))
    assert reload.read_changes() is None
    return reload.read_changes()


def test_changes_of_streams_are_taken_up(reload: ConfigReload) -> None:
    """Paths, terms, and streams that come and go; what other commands read is no matter of the monitor's."""
    assert reload.read_changes() is None
    changed = TEXT.replace("a -> b", "a -> b -> c").replace("./x", "./y") + '[streams.refunds]\npath = "r"\n'
    assert rewrite(reload, changed) is True
    assert reload.settings.streams["orders"].pathway.nodes == ("a", "b", "c")
    assert list(reload.settings.streams) == ["orders", "refunds"]
    assert str(reload.settings.monitor.workdir) == str(reload.config.parent)


def test_a_broken_file_changes_nothing(reload: ConfigReload) -> None:
    """All that is wrong is told, and the settings stay as they were; a file that is mended is taken up again."""
    before = reload.settings
    assert rewrite(reload, TEXT.replace("a -> b", "a -> b -> a")) is False
    assert "hopwatch.toml:4: streams.orders.path: a path leads on and never back, got the cycle" in reload.problem
    assert rewrite(reload, "[streams.orders\n") is False
    assert "hopwatch.toml:1" in reload.problem
    assert reload.settings == before
    assert rewrite(reload, TEXT) is True
    assert reload.problem == ""


def test_a_file_without_streams_or_without_itself_changes_nothing(reload: ConfigReload) -> None:
    """The monitor goes on with those that it has."""
    assert rewrite(reload, "") is False
    assert "no stream is declared" in reload.problem
    reload.config.unlink()
    assert [reload.read_changes() for _ in range(2)] == [None, False]
    assert "hopwatch.toml" in reload.problem


@pytest.mark.parametrize(
    ("more", "tables"),
    [
        ('[monitor]\ntrigger = "7s"\n', "[monitor]"),
        ('[metrics]\nlisten = "127.0.0.1:1"\n[alerts]\nenabled = false\n', "[alerts] and [metrics]"),
    ],
)
def test_changes_of_what_is_taken_up_at_the_start_are_refused(reload: ConfigReload, more: str, tables: str) -> None:
    """None of the file is in force then, so that nobody has to find out which half is."""
    assert rewrite(reload, TEXT.replace("a -> b", "a -> c") + more) is False
    told = f"changes of {tables} take a restart of the monitor, and until then those of streams do, too"
    assert reload.problem == told
    assert reload.settings.streams["orders"].pathway.nodes == ("a", "b")


def test_a_change_that_is_postponed_is_read_again_with_the_next_look(reload: ConfigReload) -> None:
    """Until then the settings are those that were in force."""
    before = reload.settings
    assert rewrite(reload, TEXT.replace("a -> b", "a -> c")) is True
    for _ in range(2):
        reload.postpone(before)
        assert (reload.settings, reload.is_postponed) == (before, True)
        assert reload.read_changes() is True
    assert reload.settings.streams["orders"].pathway.nodes == ("a", "c")
    assert reload.read_changes() is None
    assert not reload.is_postponed
