"""Tests of the nodes that the tap by HTTP stamps for: those that it was told of, and no name that anybody makes up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http import books
from hopwatch.probes.taps.http.refusals import NodeName, RefusalProblem
from hopwatch.testing import EPOCH_US
from tests.support.batches import TWO_PASSED
from tests.support.tap_client import GOOD, Asked, told

RECORD = {"content-type": "application/octet-stream"}
NOW_MS = EPOCH_US // 1_000
UNKNOWN: tuple[int, str, list[str]] = (422, "unknown-node", [])


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Asked]:
    """Yield an app that was told of two nodes and has taken one observation of one of them."""
    asked = Asked(tmp_path, allowed=[NodeName("orders", "router"), NodeName("orders", "sink")])
    assert asked.ask("POST", json=GOOD).status_code == 202
    yield asked
    asked.intake.close(bye=False)


def dropped(tap: Asked) -> Counter[str]:
    """Return what was dropped, by stream and node."""
    batches = [batch for batches in tap.batches().values() for batch in batches]
    found: Counter[str] = Counter()
    for batch in batches:
        found[f"{batch.stream}/{batch.node}"] += sum(drop.count for drop in batch.drops)
    return found


def test_names_that_nobody_told_of_take_no_place(tap: Asked) -> None:
    """Any number of unknown names is refused, and known nodes still have their places."""
    for number in range(books.MAX_NODES + 1):
        assert told(tap.ask("POST", json=GOOD | {"node": f"junk-{number}"})) == UNKNOWN
        assert told(tap.ask("POST", json=GOOD | {"stream": f"junk-{number}"})) == UNKNOWN
    assert tap.ask("POST", json=GOOD | {"node": "sink"}).status_code == 202


def test_a_name_that_is_not_known_may_be_any_misspelt(tap: Asked) -> None:
    """Observations of an unknown name count as dropped at the nodes of this tap, and make no instance."""
    assert told(tap.ask("POST", json=GOOD | {"node": "ruoter"})) == UNKNOWN
    assert dropped(tap) == {"orders/router": 1}


def test_records_of_a_node_that_is_not_known_are_not_passed_on(tap: Asked) -> None:
    """Nor do they push out those of which it is known that they come here."""
    assert tap.ask("POST", content=encode(replace(TWO_PASSED, node="sink")), headers=RECORD).status_code == 202
    for number in range(books.MAX_FORWARDED_NODES + 1):
        junk = encode(replace(TWO_PASSED, node=f"junk-{number}"))
        assert told(tap.ask("POST", content=junk, headers=RECORD)) == UNKNOWN
    tap.intake.tick()
    count = 2 * (books.MAX_FORWARDED_NODES + 1)
    assert dropped(tap) == {"orders/router": count, "orders/sink": count}


def test_an_idle_node_gives_its_place_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any name allowed, the node idle for longest gives its place to a new one, without a bye."""
    monkeypatch.setattr(books, "MAX_NODES", 2)
    tap = Asked(tmp_path)
    for node in ("junk", "router"):
        assert tap.ask("POST", json=GOOD | {"node": node}).status_code == 202
        tap.clock.advance(1)
    assert told(tap.ask("POST", json=GOOD | {"node": "sink"})) == (422, "too-many-nodes", [])
    tap.clock.advance(books.IDLE_S - 1)
    for node in ("router", "sink", "router"):
        assert tap.ask("POST", json=GOOD | {"node": node}).status_code == 202
    assert told(tap.ask("POST", json=GOOD | {"node": "junk"})) == (422, "too-many-nodes", [])
    kinds = {batch.kind for batches in tap.batches().values() for batch in batches}
    assert BatchKind.BYE not in kinds


def test_a_node_that_was_let_go_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an instance of its own, of which all that was posted is there."""
    monkeypatch.setattr(books, "MAX_NODES", 1)
    tap = Asked(tmp_path)
    for node in ("router", "sink", "router"):
        assert tap.ask("POST", json=GOOD | {"node": node}).status_code == 202
        tap.clock.advance(books.IDLE_S)
    counts = Counter({name.split(".")[1]: 0 for name in tap.batches()})
    for name, batches in tap.batches().items():
        counts[name.split(".")[1]] += sum(batch.count for batch in batches)
    assert counts == {"router": 2, "sink": 1}


def test_names_beside_a_sink_that_is_down_are_not_kept(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the sink is down, no name of a request is remembered but those of open nodes."""
    monkeypatch.setattr(tap.intake.books, "_allowed", None)
    monkeypatch.setattr(tap.intake.books, "_open_sender", MagicMock(side_effect=TapSourceError("the sink is down")))
    for number in range(10):
        with pytest.raises(RefusalProblem, match="the sink is down"):
            tap.intake.books.sender(NodeName("orders", f"junk-{number}"))
    assert tap.intake.books._used_s.keys() == tap.intake.books._senders.keys()
