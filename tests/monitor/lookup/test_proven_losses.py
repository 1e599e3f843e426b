"""Tests of what is proven lost at a node, and of the node that wrote it last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, update

from hopwatch.monitor.lookup.fates import WantedIds
from hopwatch.monitor.lookup.proven_losses import (
    LossQuestion,
    NodeLosses,
    count_recovered,
    find_proven_losses,
    find_window_gap,
)
from hopwatch.monitor.store import dialect, tables
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.ids import id_bytes
from tests.support.spool import START_US, at_us, observation_batch, pack_lags, window_ms
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches

ARRIVED: dict[str, Any] = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Yield an engine of the store."""
    made = dialect.create_engine(Workspace(tmp_path).store_url)
    yield made
    made.dispose()


def losses(folder: Path, engine: Engine, path: str, node: str, *batches: Batch, **more: object) -> NodeLosses:
    """Return the losses at a node after some batches."""
    workspace = Workspace(folder).configure(CONFIGURATION.replace("a -> b", path))
    workspace.watch(*batches)
    return find_proven_losses(engine, LossQuestion("orders", node)._replace(**more))  # type: ignore[arg-type]


def sources(found: NodeLosses) -> list[tuple[int, str]]:
    """Return the numbers of proven losses with the nodes that wrote them last."""
    return [(int.from_bytes(one.message_id, "big"), one.source) for one in found.proven]


def test_what_is_lost_on_the_way_was_written_by_the_node_before(tmp_path: Path, engine: Engine) -> None:
    """And so was what is lost inside the node: it wrote it nowhere."""
    batches = (
        observation_batch([7, 8, 9]),
        observation_batch([8], "b"),
        observation_batch([9], "b", seq=1, **ARRIVED),
        *closing_batches(seq=1, nodes=("a",)),
        *closing_batches(seq=2, nodes=("b",)),
    )
    assert sources(losses(tmp_path, engine, "a -> b", "b", *batches)) == [(7, "a"), (9, "a")]


def test_what_is_lost_behind_a_branch_was_written_by_the_node_itself(tmp_path: Path, engine: Engine) -> None:
    """Such a message left the node and was seen at none of those behind it."""
    batches = (
        observation_batch(range(10)),
        observation_batch(range(5), "b"),
        observation_batch(range(5, 9), "c"),
        *closing_batches(seq=1, nodes=("a", "b", "c")),
    )
    assert sources(losses(tmp_path, engine, "a -> b | c", "a", *batches)) == [(9, "a")]


def test_what_is_lost_inside_the_first_node_has_no_source(tmp_path: Path, engine: Engine) -> None:
    """Only its sender can send it again."""
    batches = (
        observation_batch([8]),
        observation_batch([9], seq=1, **ARRIVED),
        observation_batch([8], "b"),
        *closing_batches(seq=2, nodes=("a",)),
        *closing_batches(seq=1, nodes=("b",)),
    )
    found = losses(tmp_path, engine, "a -> b", "a", *batches)
    assert found.proven == []
    (one,) = found.unproven
    assert (one.missing, one.shown) == (1, f"{9:032x}")
    assert one.reason == "it was not seen to leave a node before: only its sender can send it again"


def test_of_stamps_that_are_not_kept_no_source_is_known(tmp_path: Path, engine: Engine) -> None:
    """As of rows that an older version wrote."""
    workspace = Workspace(tmp_path).configure()
    workspace.watch(observation_batch([8, 9]), observation_batch([8], "b"), *closing_batches(seq=1))
    with engine.begin() as connection:
        connection.execute(update(tables.lost_ids).values(journeys=None))
    (one,) = find_proven_losses(engine, LossQuestion("orders", "b")).unproven
    assert one.reason == "its stamps are not kept, and with them the node that it left last"


def test_where_only_some_are_surely_lost_none_is_proven(tmp_path: Path, engine: Engine) -> None:
    """Nobody knows which; ids that are looked for are counted alone."""
    workspace = Workspace(tmp_path).configure()
    workspace.watch(observation_batch(range(10)), observation_batch(range(7), "b"), *closing_batches(seq=1))
    with engine.begin() as connection:
        connection.execute(update(tables.node_windows).values(loss_lower=1).where(tables.node_windows.c.node == "b"))
    asked = LossQuestion("orders", "b")
    for wanted, count in ((None, 3), (WantedIds([id_bytes(9), id_bytes(1)]), 1)):
        found = find_proven_losses(engine, asked._replace(wanted=wanted))
        assert found.proven == []
        (one,) = found.unproven
        why = "UNKNOWN: of 3 that are missing here 1 are surely lost, and nobody knows which"
        assert (one.missing, one.reason) == (count, why)


def test_what_is_lost_and_not_listed_is_counted(tmp_path: Path, engine: Engine) -> None:
    """The store lists so many ids of a window and node, and no more."""
    workspace = Workspace(tmp_path).configure()
    workspace.watch(observation_batch(range(10)), observation_batch(range(9), "b"), *closing_batches(seq=1))
    with engine.begin() as connection:
        here = tables.node_windows.c.node == "b"
        connection.execute(update(tables.node_windows).values(loss=12_001, loss_lower=12_001).where(here))
    found = find_proven_losses(engine, LossQuestion("orders", "b"))
    assert sources(found) == [(9, "a")]
    (one,) = found.unproven
    assert one.missing == 12_000
    assert one.reason.startswith("they are lost, and the store does not list their ids")


def test_windows_of_the_span_alone_count(tmp_path: Path, engine: Engine) -> None:
    """From its start on, before its end."""
    later: dict[str, Any] = {"window_start_ms": window_ms(1), "seq": 1}
    batches = (
        observation_batch([8, 9]),
        observation_batch([8], "b"),
        observation_batch([6, 7], **later),
        observation_batch([6], "b", **later),
        *closing_batches(seq=2),
    )
    assert sources(losses(tmp_path, engine, "a -> b", "b", *batches)) == [(9, "a"), (7, "a")]
    asked = LossQuestion("orders", "b")
    assert sources(find_proven_losses(engine, asked._replace(to_us=at_us(60)))) == [(9, "a")]
    assert sources(find_proven_losses(engine, asked._replace(from_us=at_us(60)))) == [(7, "a")]


def test_a_window_that_is_not_judged_says_so(tmp_path: Path, engine: Engine) -> None:
    """One that is not kept, too; of one that is judged there is nothing to say."""
    Workspace(tmp_path).configure().watch(observation_batch([8]), *closing_batches(seq=1))
    assert find_window_gap(engine, "orders", START_US) == ""
    assert find_window_gap(engine, "orders", at_us(600)) == "the store does not have this window"
    with engine.begin() as connection:
        connection.execute(update(tables.windows).values(status="OPEN"))
    why = "the window is OPEN, and what is lost in it is not judged yet"
    assert find_window_gap(engine, "orders", START_US) == why


def test_what_is_missing_no_more_is_recovered(engine: Engine, tmp_path: Path) -> None:
    """Of windows that are kept, and list all that they miss: of a window with unlisted losses nothing is known."""
    workspace = Workspace(tmp_path).configure()
    workspace.watch(observation_batch(range(10)), observation_batch(range(8), "b"), *closing_batches(seq=1))
    sent = {at_us(0): {id_bytes(7), id_bytes(8)}, at_us(60): {id_bytes(9)}}
    assert count_recovered(engine, "orders", "b", sent) == 1
    assert count_recovered(engine, "orders", "a", sent) == 2
    with engine.begin() as connection:
        connection.execute(update(tables.node_windows).values(loss=3))
    assert count_recovered(engine, "orders", "b", sent) == 0


def test_the_first_losses_beyond_a_bound_end_the_search(engine: Engine, tmp_path: Path) -> None:
    """A caller that can take no more messages is told that there are more."""
    two = [observation_batch([number], seq=number, window_start_ms=window_ms(number)) for number in range(2)]
    workspace = Workspace(tmp_path).configure()
    workspace.watch(*two, *closing_batches(seq=0, nodes="b"), *closing_batches(seq=2, nodes="a"))
    asked = LossQuestion("orders", "b")
    assert len(find_proven_losses(engine, asked).proven) == 2
    assert len(find_proven_losses(engine, asked, 0).proven) == 1
