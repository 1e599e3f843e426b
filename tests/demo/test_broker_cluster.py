"""Tests of the brokers that the demo starts: what is said where their jars are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.demo import broker_cluster


@pytest.mark.parametrize("flags", ["--kafka", "--service --messages 10"])
def test_missing_jars_are_named_with_what_fetches_them(
    flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3 before anything is written."""
    monkeypatch.setattr(broker_cluster, "JARS", tmp_path / "none")
    assert main(["demo", *flags.split(), "--workdir", str(tmp_path / "run")]) == 3
    told = f"hopwatch: the brokers' jars are not in {tmp_path / 'none'}: run 'make servers' in a checkout of Hopwatch"
    assert capsys.readouterr().err.startswith(told)
    assert list(tmp_path.iterdir()) == []
