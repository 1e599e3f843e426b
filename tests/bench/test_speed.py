"""Tests of the side by side: a contestant that did its work has a line with all that it took."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import contestant
from bench.contestant import ContestantError
from bench.footprint import folder_bytes
from bench.generate import GeneratedWork
from bench.speed import PEERS, _peer


@pytest.mark.parametrize("who", ["DuckDB", "bare kernel"])
def test_a_peer_has_a_line_with_what_it_took(
    who: str, little: GeneratedWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rate is of the query alone, its memory of the whole process; the kernel reads nothing."""
    monkeypatch.setattr(contestant, "LOOK_S", 0.01)
    (peer,) = [peer for peer in PEERS if peer.who == who]
    said: list[str] = []
    line = _peer(peer, little, tmp_path, said.append)
    assert said == [line.who] == [who]
    assert line.seconds is not None
    assert line.rate * line.seconds == pytest.approx(200_000)
    assert line.memory_bytes
    assert line.input_bytes == (folder_bytes(little.folder / "parquet") if peer.reads_parquet else None)


def test_a_peer_that_finds_something_else_has_no_line(little: GeneratedWork, tmp_path: Path) -> None:
    """A peer with another result is an error that says what differs, without a rate."""
    (duck,) = [peer for peer in PEERS if peer.who == "DuckDB"]
    (tmp_path / "parquet").mkdir()
    (tmp_path / "parquet" / "00000.parquet").symlink_to(little.parquet(0))
    (tmp_path / "truth.npz").symlink_to(little.folder / "truth.npz")
    with pytest.raises(ContestantError, match=r"WrongResultError: DuckDB found 8 windows of nodes, there are 16$"):
        _peer(duck, GeneratedWork(little.work, tmp_path), tmp_path, lambda _: None)
