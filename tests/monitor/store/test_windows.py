"""Tests of windows in the store: what is written is what is read, however often it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import Engine, select

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.masks import ids_of
from hopwatch.monitor.kernel.tally import Observed, Tally, take
from hopwatch.monitor.results import NodeResult, Status, WindowResult, as_json
from hopwatch.monitor.store import lost, reader, tables, writer
from hopwatch.monitor.store.reader import REPORTED_IDS
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import hash_text, id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from tests.monitor.spooled import START_US, at, ids
from tests.monitor.store.stored import PATHWAY, concluded, dump, results, write

Json = reader.Json
NO_OUTCOMES: Final = np.empty(0, np.uint8)


def window(engine: Engine) -> WindowResult | None:
    """Return the window that tests look at."""
    with engine.begin() as connection:
        return reader.window(connection, "orders", START_US)


def reported(engine: Engine) -> list[Json]:
    """Return the windows of the report; a stream is reported once it is listed."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write(connection, writer.Changes(0, streams={"orders": (START_US, START_US)}))
    (stream,) = reader.report(engine)["streams"]
    return list(stream["windows"])


@given(results())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_window_is_read_as_it_was_written(engine: Engine, result: WindowResult) -> None:
    """Every field of window and nodes, with any value that it may have; the report says the same."""
    write(engine, concluded(result))
    assert window(engine) == result
    assert reported(engine) == [as_json(result, [[], []], [[], []])]


def test_a_window_that_was_never_concluded_is_none(engine: Engine) -> None:
    """Nothing is made up."""
    assert window(engine) is None


def test_writing_twice_is_writing_once(engine: Engine) -> None:
    """Rows are written over by their keys."""
    conclusion = concluded(lost={"b": ids(1, 2)}, changed={"lost": [0, 2]})
    write(engine, conclusion)
    once = dump(engine)
    write(engine, conclusion)
    assert dump(engine) == once


def test_the_newest_conclusion_stands(engine: Engine) -> None:
    """Of a window there is one row, of each of its nodes one."""
    first = concluded(status=Status.PROVISIONAL)
    last = concluded(replace(first.result, status=Status.FINAL, known=7))
    write(engine, first)
    write(engine, last)
    assert window(engine) == last.result
    assert [len(dump(engine)[name]) for name in ("windows", "node_windows")] == [1, 2]


def test_windows_come_in_order_of_time_and_of_the_named_range(engine: Engine) -> None:
    """From is inclusive, to is exclusive; another stream's windows stay out."""
    base = concluded().result
    for number in (2, 0, 1):
        write(engine, concluded(replace(base, window_start_us=START_US + number * WINDOW_US)))
    write(engine, concluded(replace(base, stream="trades")))
    with engine.execution_options(writes=True).begin() as connection:
        writer.write(connection, writer.Changes(0, streams=dict.fromkeys(("trades", "orders"), (0, 0))))
    told = reader.report(engine, "orders", at(60), at(120))
    assert [(stream["stream"], len(stream["windows"])) for stream in told["streams"]] == [("orders", 1)]
    told = reader.report(engine)
    assert [stream["stream"] for stream in told["streams"]] == ["orders", "trades"]
    starts = [window["window_start"] for window in told["streams"][0]["windows"]]
    assert starts == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]


def test_the_monitors_own_stream_is_in_no_report(engine: Engine) -> None:
    """_hopwatch is plumbing."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write(connection, writer.Changes(0, streams={"_hopwatch": (START_US, START_US)}))
    assert reader.report(engine)["streams"] == []
    assert reader.report(engine, "_hopwatch")["streams"] == []


def test_nodes_keep_their_place_in_the_pathway(engine: Engine) -> None:
    """Not that of their names."""
    base = concluded().result
    turned = tuple(replace(node, node=name) for node, name in zip(base.nodes, ("z", "a"), strict=True))
    write(engine, concluded(replace(base, nodes=turned)))
    assert [node["node"] for node in reported(engine)[0]["nodes"]] == ["z", "a"]


def test_digests_are_kept_beside_their_figures(engine: Engine) -> None:
    """So that hours and days can be merged from minutes."""
    lags_us = np.arange(1_000, dtype=np.int64)
    packed = np.arange(2_000, dtype=np.uint64).reshape(-1, 2)
    tally = take(PATHWAY, [Observed(0, "", at(1), packed, lags_us, lags_us + 5, np.empty(0, np.uint8))], at(60))
    write(engine, concluded(tally=tally))
    columns = tables.node_windows.c
    with engine.begin() as connection:
        kept = connection.execute(select(columns.lag_in_us_digest, columns.inside_us_digest)).first()
    assert kept is not None
    digests = [tdigest.from_bytes(parcel) for parcel in kept]
    assert [(digest.count, digest.min, digest.max) for digest in digests] == [(1_000, 0, 999), (1_000, 5, 5)]


# Lost ids


def test_lost_ids_are_reported_with_their_node(engine: Engine) -> None:
    """In byte order, as 32 hexadecimal digits, the first hundred of them; all are kept."""
    many = ids(*range(REPORTED_IDS + 50))
    write(engine, concluded(lost={"b": many}))
    (told,) = reported(engine)
    assert [len(node["lost_ids"]) for node in told["nodes"]] == [0, REPORTED_IDS]
    assert told["nodes"][1]["lost_ids"][99] == f"{99:032x}"
    assert len(reader.lost_ids(engine, "orders", "b")) == REPORTED_IDS + 50
    assert reader.lost_ids(engine, "orders", "a") == set()


def test_an_id_that_is_lost_no_more_is_struck_out(engine: Engine) -> None:
    """Each judgement of a window replaces the ids of the one before, at every node."""
    write(engine, concluded(lost={"a": ids(1), "b": ids(2, 3)}))
    write(engine, concluded(lost={"b": ids(3)}))
    assert reader.lost_ids(engine, "orders", "a") == set()
    assert reader.lost_ids(engine, "orders", "b") == {id_bytes(3)}
    with engine.begin() as connection:
        assert reader.window_lost_ids(connection, "orders", START_US) == {id_bytes(3)}


def test_ids_of_a_window_that_is_not_final_are_not_kept(engine: Engine) -> None:
    """What is in flight is not lost."""
    write(engine, concluded(lost={"b": ids(1)}, status=Status.PROVISIONAL))
    assert reader.lost_ids(engine, "orders", "b") == set()


def test_lost_ids_of_an_older_version_have_no_journey(engine: Engine) -> None:
    """They were written before stamps were kept, and before ids had names."""
    write(engine, concluded(lost={"b": ids(1)}))
    older = dict.fromkeys(("journeys", "id_kinds", "id_text_ends", "id_texts"))
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(tables.lost_ids.update().values(older))
    (found,) = reader.where_lost(engine, id_bytes(1))
    assert found.message == lost.Message(WireIdKind.UNKNOWN, None, None, ())


def test_where_a_message_was_lost_is_found_by_its_whole_id(engine: Engine) -> None:
    """Sixteen bytes that lie across two neighbours are no id."""
    write(engine, concluded(lost={"b": ids(1, 2)}))
    assert reader.where_lost(engine, id_bytes(2)) == [
        reader.Missing("orders", START_US, "b", (0, 0), lost.Message(WireIdKind.UNKNOWN, None, None, ()))
    ]
    assert reader.where_lost(engine, id_bytes(2), "trades") == []
    across = ids(1, 2)[8:24]
    assert across in ids(1, 2)
    assert reader.where_lost(engine, across) == []


# Slowest messages


def slow(message_ids: bytes, **said: Any) -> Tally:  # noqa: ANN401 - as a batch has them
    """Return the tally of three messages that left a, the second of them last."""
    lags_us = np.array([5, 2**62, -5], np.int64)
    return take(PATHWAY, [Observed(0, "", at(1), ids_of(message_ids), lags_us, lags_us, NO_OUTCOMES, **said)], at(60))


def test_slowest_messages_are_reported_with_their_node(engine: Engine) -> None:
    """With their lags, the slowest first; an empty list of a node that nothing left."""
    write(engine, concluded(tally=slow(ids(1, 2, 3))))
    (told,) = reported(engine)
    lags_us = {2: 2**62, 1: 5, 3: -5}
    expected = [{"id": f"{number:032x}", "lag_out_us": lag_us} for number, lag_us in lags_us.items()]
    assert [node["slowest"] for node in told["nodes"]] == [expected, []]


@pytest.mark.parametrize(
    "text", ["ü\u0000\U0001f600", "'; DROP TABLE windows; --", '"]', "\\u0000", "[bold]x[/]", "\u2400"]
)
def test_the_texts_of_slowest_messages_are_data(text: str, engine: Engine) -> None:
    """Quotes, SQL, markup and what no database takes as a text come back as they went in."""
    texts = [text.encode(), b"", b""]
    ends = np.cumsum([len(one) for one in texts], dtype=np.uint32)
    said = {"id_kind": WireIdKind.TEXT, "id_texts": np.frombuffer(texts[0], np.uint8), "id_text_ends": ends}
    write(engine, concluded(tally=slow(b"".join(map(hash_text, texts)), **said)))
    (told,) = reported(engine)
    assert {one["id"] for one in told["nodes"][0]["slowest"]} == {text, ""}


def test_slowest_messages_that_were_not_kept_are_null(engine: Engine) -> None:
    """Those of a window that an older version tallied."""
    write(engine, concluded(tally=replace(slow(ids(1, 2, 3)), slowest=None)))
    (told,) = reported(engine)
    assert [node["slowest"] for node in told["nodes"]] == [None, None]


# Revisions, and what can still change


def test_an_amendment_leaves_what_it_changed(engine: Engine) -> None:
    """Field, before and after, and the watermark at which it was judged; the first judgement leaves nothing."""
    write(engine, concluded())
    amended = replace(concluded().result, status=Status.AMENDED, revision=1)
    write(engine, concluded(amended, changed={"lost": [2, 1]}), watermark_us=at(900))
    (row,) = dump(engine)["revisions"]
    assert row[:4] == ("orders", START_US, 1, at(900))
    assert json.loads(row[4]) == {"lost": [2, 1]}


def test_a_window_that_is_forgotten_keeps_its_results(engine: Engine) -> None:
    """What it was judged from goes, and it is live no more."""
    conclusion = concluded(lost={"b": ids(1)})
    write(engine, conclusion)
    other = START_US + WINDOW_US
    write(engine, concluded(replace(conclusion.result, window_start_us=other)))
    with engine.execution_options(writes=True).begin() as connection:
        parcels = {("orders", start_us, shard): b"p" for start_us in (START_US, other) for shard in (0, 1)}
        writer.write(connection, writer.Changes(0, tallies=parcels))
        writer.forget(connection, [("orders", START_US)])
        assert [row["window_start_us"] for row in reader.live_windows(connection)] == [other]
    assert [row[1] for row in dump(engine)["tallies"]] == [other, other]
    assert window(engine) == conclusion.result
    assert reader.lost_ids(engine, "orders", "b") == {id_bytes(1)}


def test_after_a_run_over_everything_nothing_is_live(engine: Engine) -> None:
    """Nothing will be judged again; results stay."""
    write(engine, concluded())
    with engine.execution_options(writes=True).begin() as connection:
        writer.write(connection, writer.Changes(0, tallies={("orders", START_US, 0): b"p"}))
        writer.forget_all(connection)
        assert list(reader.live_windows(connection)) == []
    assert dump(engine)["tallies"] == []
    assert window(engine) is not None


def test_clearing_leaves_the_names_and_no_results(engine: Engine) -> None:
    """The schema's version and the lineage stay."""
    before = dump(engine)["meta"]
    write(engine, concluded(lost={"b": ids(1)}, changed={}))
    with engine.execution_options(writes=True).begin() as connection:
        writer.clear(connection)
    assert dump(engine) == {table.name: [] for table in tables.metadata.sorted_tables} | {"meta": before}


@pytest.mark.parametrize(
    "name", ["[bold]x[/]", "'; DROP TABLE windows; --", '"', "\\", "ü\u0000\U0001f600", "n" * 10_000]
)
def test_names_and_reasons_are_data(name: str, engine: Engine) -> None:
    """Markup, quotes, SQL and long texts come back as they went in."""
    base = concluded().result
    nodes: tuple[NodeResult, ...] = tuple(replace(node, node=f"{place}{name}") for place, node in enumerate(base.nodes))
    result = replace(base, reasons=(name,), nodes=nodes)
    write(engine, concluded(result))
    assert window(engine) == result
