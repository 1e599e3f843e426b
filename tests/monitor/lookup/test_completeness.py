"""Tests of contracts over several versions of a path: what was before a node then counts, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hopwatch.monitor.lookup.completeness import ask_completeness
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, pathway_versions, schema
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.spool import START_US, make_batch, observation_batch, window_ms
from tests.support.workspace import CONFIGURATION, Workspace

CONTRACT = '[completeness.of_c]\nstream = "orders"\nnodes = ["c"]\nover = "2m"\n'
FIRST, SECOND = '"a -> b -> c -> d"', '"a -> c -> d"'


def ask(workspace: Workspace, now_us: int) -> dict[str, object]:
    """Ask for the first two minutes, which were both judged by the first path."""
    settings = load(workspace.config, flags={}, environ={})
    engine = dialect.create_engine(settings.store.url)
    return ask_completeness(engine, settings, "of_c", START_US + 2 * WINDOW_US, now_us)


@pytest.fixture
def edited(tmp_path: Path) -> Workspace:
    """Return a store of which b has lost a message, and whose path has no b behind the first two minutes."""
    workspace = Workspace(tmp_path).configure(CONFIGURATION.replace('"a -> b"', FIRST) + CONTRACT)
    told = [
        observation_batch(
            range(9 if node in "cd" and not minute else 10), node, seq=minute, window_start_ms=window_ms(minute)
        )
        for node in "abcd"
        for minute in range(2)
    ]
    workspace.watch(*told, *(make_batch(BatchKind.BYE, node, seq=2, window_start_ms=window_ms(1)) for node in "abcd"))
    workspace.configure(CONFIGURATION.replace('"a -> b"', SECOND) + CONTRACT)
    return workspace


def register(workspace: Workspace) -> None:
    """Register what is configured as a version behind all windows."""
    settings = load(workspace.config, flags={}, environ={})
    with schema.open_change(dialect.create_engine(settings.store.url)) as connection:
        planned = pathway_versions.plan_versions(connection, settings.stream_configs(), 0)
        assert planned["orders"].valid_from_us == START_US + 2 * WINDOW_US
        pathway_versions.save_versions(connection, planned, 0)


def test_a_loss_at_a_node_that_is_gone_still_counts(edited: Workspace) -> None:
    """A span is never complete because the node that lost of it is no part of the path any more."""
    before = ask(edited, START_US + 9 * WINDOW_US)
    register(edited)
    after = ask(edited, START_US + 9 * WINDOW_US)
    assert (before["state"], after["state"]) == ("failed", "failed")
    assert (before["lost_lower"], after["lost_lower"]) == (1, 1)


def test_a_window_of_a_path_without_the_contracts_node_has_no_upper_bound(edited: Workspace) -> None:
    """Nothing is known of what came to it; a window of a path that has it is as it was."""
    settings = load(edited.config, flags={}, environ={})
    with schema.open_change(dialect.create_engine(settings.store.url)) as connection:
        (known,) = pathway_versions.read_versions(connection).values()
        first = replace(known, pathway=Pathway.parse("a -> b -> d"))
        now = replace(known, valid_from_us=START_US + WINDOW_US, earlier=(first,))
        pathway_versions.save_versions(connection, {"orders": now}, 0)
    answer = ask(edited, START_US + 9 * WINDOW_US)
    assert answer["lost_upper"] is None
    assert answer["lost_lower"] == 0
