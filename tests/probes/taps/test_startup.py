"""Tests of how a tap opens its probe: a mistake is told before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.segment import read_frames
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.startup import open_probe
from tests.support.tap_bench import Place


@pytest.fixture
def place() -> Place:
    """Return a place to test in."""
    return Place()


def test_a_probe_is_opened_on_its_sink(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sink is that of the flag, or of the environment; what is bad later on raises nothing."""
    monkeypatch.setenv("HOPWATCH_SINK", f"spool:{tmp_path}/one")
    for sink in (None, f"spool:{tmp_path}/two"):
        probe, patient = open_probe("orders", "router", sink, place.around)
        probe.arrived(1, place.clock.us)
        probe.arrived("", "soon")  # type: ignore[arg-type]  # what is bad
        probe.flush()
        assert patient.is_settled
        probe.close()
    segments = sorted(tmp_path.rglob("*.seg"))
    assert [path.parent.parent.name for path in segments] == ["one"] * 3 + ["two"] * 3
    records = [
        path.read_bytes()[frame.start : frame.end] for path in segments for frame in read_frames(path.read_bytes())
    ]
    assert {decode(record).node for record in records} == {"router"}


def test_without_a_sink_no_tap_starts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says how to name one."""
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    with pytest.raises(TapUsageError, match=r"there is no sink: name one with --sink, such as spool:\./var/spool"):
        open_probe("orders", "router", None, place.around)


@pytest.mark.parametrize(
    ("stream", "sink", "told"),
    [
        ("orders", "ftp://host", "--sink: a sink is spool:FOLDER"),
        ("or ders", "spool:./var", "a stream is 1 to 128 of the characters A-Za-z0-9._-, got 'or ders'"),
    ],
)
def test_what_cannot_be_is_told(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, sink: str, told: str
) -> None:
    """A name, a scheme."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TapUsageError) as caught:
        open_probe(stream, "router", sink, place.around)
    assert str(caught.value).startswith(told)


def test_a_sink_that_cannot_be_written_is_told(place: Place, tmp_path: Path) -> None:
    """With the place and the reason."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TapSourceError) as caught:
        open_probe("orders", "router", f"spool:{tmp_path}/file", place.around)
    assert str(caught.value).startswith(f"the sink spool:{tmp_path}/file cannot be written: [Errno 20] Not a directory")
    assert str(caught.value).endswith("see to it and start again")
