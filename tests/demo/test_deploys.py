"""Tests of deploys: which messages a new version loses, what stamps say of it, and how it is marked."""

from __future__ import annotations

from pathlib import Path

from hopwatch.demo.deploys import DeployMarkers
from hopwatch.demo.faults import BAD_LANE, LANES, Dice, FaultAction, Faults, NodeFaults
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.markers import query_markers

FAULTS = NodeFaults(deployed_from=10_000, version="1.1", healed_from=90_000)


def test_a_new_version_loses_messages_of_one_lane() -> None:
    """About 3 % of them, from the first message on that it handles, and until it is healed."""
    dice = Dice(7, "norm", FAULTS)
    lost = [number for number in range(100_000) if dice.fate(number) is FaultAction.DROP]
    assert {number % LANES for number in lost} == {BAD_LANE}
    assert (min(lost) >= 10_000, max(lost) < 90_000) == (True, True)
    assert 0.025 < len(lost) / (80_000 / LANES) < 0.035


def test_stamps_say_version_and_lane() -> None:
    """At a node where a version is deployed; others say nothing."""
    dice = Dice(7, "norm", FAULTS)
    assert dice.labels(9_999) == {"version": "1.0", "lane": "3"}
    assert dice.labels(10_000) == {"version": "1.1", "lane": "0"}
    assert Dice(7, "norm", NodeFaults(drop_ratio=0.5)).labels(0) is None


def test_a_deploy_is_marked_once_it_is_there(tmp_path: Path) -> None:
    """With the first message of the new version, in order; a store that is not there yet is waited for."""
    count = [10]
    faults = Faults(0, {"norm": FAULTS, "router": NodeFaults(deployed_from=30_000, version="2"), "x": NodeFaults()})
    engine = dialect.create_engine(f"sqlite:///{tmp_path}/store.db")
    markers = DeployMarkers(faults, engine, lambda: count[0], lambda: 5)
    assert list(markers.mark_due()) == []
    count[0] = 20_000
    assert list(markers.mark_due()) == []
    schema.prepare_store(engine)
    assert list(markers.mark_due()) == ["deployed version 1.1 of norm"]
    count[0] = 30_000
    assert list(markers.mark_due()) == ["deployed version 2 of router"]
    assert list(markers.mark_due()) == []
    with engine.begin() as connection:
        found = query_markers(connection, "flights", 0, 10)
    assert found == [
        Marker(5, "deploy norm", "hopwatch demo", "flights", {"version": "1.1"}, 1),
        Marker(5, "deploy router", "hopwatch demo", "flights", {"version": "2"}, 2),
    ]
    engine.dispose()
