"""The rounds of the bench with a real broker: each entrance is what it is said to be, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.contestant import ContestantError
from bench.gate import comparison, preflight, server
from bench.gate.comparison import Sizes
from bench.truth import WrongResultError
from servers.kafka import Kafka
from tests.bench.contestants import quiet
from tests.bench.gate.entrance import entrance

LITTLE = Sizes(rounds=1, batches_s=0.3, singles_s=0.3, slow_rounds=1, slow_s=0.3, warm_s=0.1, connections=2, bombs=1)


@pytest.mark.soak  # a bench
def test_all_of_it_in_little(tmp_path: Path) -> None:
    """A line a contestant, one for slow clients, one for bombs; the measure itself checks answers and topics."""
    lines = comparison.measure(tmp_path, quiet, LITTLE)
    assert [type(line).__name__ for line in lines] == ["EntranceFigures"] * 3 + ["SlowFigures", "BombFigures"]
    assert not (tmp_path / "broker").exists()


@pytest.mark.parametrize("kind", [server.GATE, server.PLAIN])
def test_an_entrance_that_takes_what_does_not_fit_is_told(kind: str) -> None:
    """One that is said to validate, and does not."""
    said = f"the entrance '{kind}' answers 422 to an order that does not fit, got 201"
    with entrance(status=201) as asked, pytest.raises(WrongResultError, match=said):
        preflight.check_entrance(kind, asked.port)


def test_a_schema_that_is_not_taken_is_told() -> None:
    """Before anything is measured."""
    with entrance(status=503) as asked, pytest.raises(WrongResultError, match="the schema is registered, got 503"):
        preflight.check_entrance(server.GATE, asked.port)


def test_an_entrance_that_does_not_start_is_told(tmp_path: Path) -> None:
    """With what it said last: here, that there is no broker."""
    broker = Kafka(tmp_path / "broker")
    with (
        pytest.raises(ContestantError, match=r"(?s)the entrance 'gate' did not start: .*cannot be reached"),
        server.run_server(server.GATE, tmp_path, broker),
    ):
        pass
