"""Tests of windows in the store: what is written is what is read, however often it is written."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import Engine, select

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.masks import ids_from_bytes
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import Tally, build_tally
from hopwatch.monitor.results import NodeResult, Status, WindowResult, window_to_json
from hopwatch.monitor.store import lost_messages, reader, tables, writer
from hopwatch.monitor.store.reader import MAX_REPORTED_IDS
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import hash_text, id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.clock import ManualClock
from tests.support.conclusions import PATHWAY, build_conclusion, dump_tables, window_results, write_conclusions
from tests.support.examples import examples
from tests.support.spool import START_US, at_us, pack_ids

Json = reader.Json
NO_OUTCOMES: Final = np.empty(0, np.uint8)
NOTHING_MORE: Final[Json] = {
    "lost_ids": [],
    "slowest": [],
    "labels": [],
    "causes": [],
    "lag_causes": [],
    "seconds": None,
    "bursts": [],
    "times": [],
}


def window(engine: Engine) -> WindowResult | None:
    """Return the window that tests look at."""
    with engine.begin() as connection:
        return reader.read_window(connection, "orders", START_US)


def reported(engine: Engine) -> list[Json]:
    """Return the windows of the report; a stream is reported once it is listed."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, writer.Changes(0, streams={"orders": (START_US, START_US)}))
    (stream,) = reader.read_report(engine)["streams"]
    return list(stream["windows"])


@given(window_results())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_window_is_read_as_it_was_written(engine: Engine, result: WindowResult) -> None:
    """Every field of window and nodes, with any value that it may have; the report says the same."""
    write_conclusions(engine, build_conclusion(result))
    assert window(engine) == result
    assert reported(engine) == [
        window_to_json(
            result,
            [asdict(node) | {"overdue_ids": list(node.overdue_ids)} | NOTHING_MORE for node in result.nodes],
        )
    ]


def test_a_window_that_was_never_concluded_is_none(engine: Engine) -> None:
    """Nothing is made up."""
    assert window(engine) is None


def test_writing_twice_is_writing_once(engine: Engine) -> None:
    """Rows are written over by their keys; only the number of the write is another."""
    conclusion = build_conclusion(lost={"b": pack_ids(1, 2)}, changed={"lost": [0, 2]})
    write_conclusions(engine, conclusion)
    once = dump_tables(engine)
    write_conclusions(engine, conclusion)
    twice = dump_tables(engine)
    ((*of_once, first),), ((*of_twice, second),) = once.pop("windows"), twice.pop("windows")
    assert (of_once, first, second) == (of_twice, 1, 2)
    assert [dict(told.pop("meta"))["sequence"] for told in (once, twice)] == ["1", "2"]
    assert once == twice


def test_the_newest_conclusion_stands(engine: Engine) -> None:
    """Of a window there is one row, of each of its nodes one."""
    first = build_conclusion(status=Status.PROVISIONAL)
    last = build_conclusion(replace(first.result, status=Status.FINAL, known=7))
    write_conclusions(engine, first)
    write_conclusions(engine, last)
    assert window(engine) == last.result
    assert [len(dump_tables(engine)[name]) for name in ("windows", "node_windows")] == [1, 2]


def test_windows_come_in_order_of_time_and_of_the_named_range(engine: Engine) -> None:
    """From is inclusive, to is exclusive; another stream's windows stay out."""
    base = build_conclusion().result
    for number in (2, 0, 1):
        write_conclusions(engine, build_conclusion(replace(base, window_start_us=START_US + number * WINDOW_US)))
    write_conclusions(engine, build_conclusion(replace(base, stream="trades")))
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, writer.Changes(0, streams=dict.fromkeys(("trades", "orders"), (0, 0))))
    told = reader.read_report(engine, "orders", at_us(60), at_us(120))
    assert [(stream["stream"], len(stream["windows"])) for stream in told["streams"]] == [("orders", 1)]
    told = reader.read_report(engine)
    assert [stream["stream"] for stream in told["streams"]] == ["orders", "trades"]
    starts = [window["window_start"] for window in told["streams"][0]["windows"]]
    assert starts == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]


def test_the_monitors_own_stream_is_in_no_report(engine: Engine) -> None:
    """_hopwatch is plumbing."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, writer.Changes(0, streams={"_hopwatch": (START_US, START_US)}))
    assert reader.read_report(engine)["streams"] == []
    assert reader.read_report(engine, "_hopwatch")["streams"] == []


def test_nodes_keep_their_place_in_the_pathway(engine: Engine) -> None:
    """Not that of their names."""
    base = build_conclusion().result
    turned = tuple(replace(node, node=name) for node, name in zip(base.nodes, ("z", "a"), strict=True))
    write_conclusions(engine, build_conclusion(replace(base, nodes=turned)))
    assert [node["node"] for node in reported(engine)[0]["nodes"]] == ["z", "a"]


def test_digests_are_kept_beside_their_figures(engine: Engine) -> None:
    """So that hours and days can be merged from minutes."""
    lags_us = np.arange(1_000, dtype=np.int64)
    packed = np.arange(2_000, dtype=np.uint64).reshape(-1, 2)
    tally = build_tally(
        PATHWAY, [ObservedBatch(0, "", at_us(1), packed, lags_us, lags_us + 5, np.empty(0, np.uint8))], at_us(60)
    )
    write_conclusions(engine, build_conclusion(tally=tally))
    columns = tables.node_windows.c
    with engine.begin() as connection:
        kept = connection.execute(select(columns.lag_in_us_digest, columns.inside_us_digest)).first()
    assert kept is not None
    digests = [tdigest.from_bytes(parcel) for parcel in kept]
    assert [(digest.count, digest.min, digest.max) for digest in digests] == [(1_000, 0, 999), (1_000, 5, 5)]


# Lost ids


def test_lost_ids_are_reported_with_their_node(engine: Engine) -> None:
    """In byte order, as 32 hexadecimal digits, the first hundred of them; all are kept."""
    many = pack_ids(*range(MAX_REPORTED_IDS + 50))
    write_conclusions(engine, build_conclusion(lost={"b": many}))
    (told,) = reported(engine)
    assert [len(node["lost_ids"]) for node in told["nodes"]] == [0, MAX_REPORTED_IDS]
    assert told["nodes"][1]["lost_ids"][99] == f"{99:032x}"
    assert len(reader.read_lost_ids(engine, "orders", "b")) == MAX_REPORTED_IDS + 50
    assert reader.read_lost_ids(engine, "orders", "a") == set()


def test_an_id_that_is_lost_no_more_is_struck_out(engine: Engine) -> None:
    """Each judgement of a window replaces the ids of the one before, at every node."""
    write_conclusions(engine, build_conclusion(lost={"a": pack_ids(1), "b": pack_ids(2, 3)}))
    write_conclusions(engine, build_conclusion(lost={"b": pack_ids(3)}))
    assert reader.read_lost_ids(engine, "orders", "a") == set()
    assert reader.read_lost_ids(engine, "orders", "b") == {id_bytes(3)}
    with engine.begin() as connection:
        assert reader.read_window_lost_ids(connection, "orders", START_US) == {"b": {id_bytes(3)}}


def test_ids_of_a_window_that_is_not_final_are_not_kept(engine: Engine) -> None:
    """Missing ids of a window that is not final are not stored."""
    write_conclusions(engine, build_conclusion(lost={"b": pack_ids(1)}, status=Status.PROVISIONAL))
    assert reader.read_lost_ids(engine, "orders", "b") == set()


def test_lost_ids_of_an_older_version_have_no_journey(engine: Engine) -> None:
    """Lost ids stored by an older version are read without journeys and names."""
    write_conclusions(engine, build_conclusion(lost={"b": pack_ids(1)}))
    older = dict.fromkeys(("journeys", "id_kinds", "id_text_ends", "id_texts"))
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(tables.lost_ids.update().values(older))
    (found,) = reader.find_losses(engine, id_bytes(1))
    assert found.message == lost_messages.LostMessage(WireIdKind.UNKNOWN, None, None, ())


def test_where_a_message_was_lost_is_found_by_its_whole_id(engine: Engine) -> None:
    """Sixteen bytes that lie across two neighbours are no id."""
    write_conclusions(engine, build_conclusion(lost={"b": pack_ids(1, 2)}))
    assert reader.find_losses(engine, id_bytes(2)) == [
        reader.LossLocation(
            "orders", START_US, "b", (0, 0), lost_messages.LostMessage(WireIdKind.UNKNOWN, None, None, ())
        )
    ]
    assert reader.find_losses(engine, id_bytes(2), "trades") == []
    across = pack_ids(1, 2)[8:24]
    assert across in pack_ids(1, 2)
    assert reader.find_losses(engine, across) == []


# Slowest messages


def slow(message_ids: bytes, **said: Any) -> Tally:  # noqa: ANN401 - as a batch has them
    """Return the tally of three messages that left a, the second of them last."""
    lags_us = np.array([5, 2**62, -5], np.int64)
    return build_tally(
        PATHWAY,
        [ObservedBatch(0, "", at_us(1), ids_from_bytes(message_ids), lags_us, lags_us, NO_OUTCOMES, **said)],
        at_us(60),
    )


def test_slowest_messages_are_reported_with_their_node(engine: Engine) -> None:
    """With their lags, the slowest first; an empty list of a node that nothing left."""
    write_conclusions(engine, build_conclusion(tally=slow(pack_ids(1, 2, 3))))
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
    write_conclusions(engine, build_conclusion(tally=slow(b"".join(map(hash_text, texts)), **said)))
    (told,) = reported(engine)
    assert {one["id"] for one in told["nodes"][0]["slowest"]} == {text, ""}


def test_slowest_messages_that_were_not_kept_are_null(engine: Engine) -> None:
    """Those of a window that an older version tallied."""
    write_conclusions(engine, build_conclusion(tally=replace(slow(pack_ids(1, 2, 3)), slowest=None)))
    (told,) = reported(engine)
    assert [node["slowest"] for node in told["nodes"]] == [None, None]


# Revisions, and what can still change


def test_an_amendment_leaves_what_it_changed(engine: Engine) -> None:
    """Field, before and after, and the watermark at which it was judged; the first judgement leaves nothing."""
    write_conclusions(engine, build_conclusion())
    amended = replace(build_conclusion().result, status=Status.AMENDED, revision=1)
    write_conclusions(engine, build_conclusion(amended, changed={"lost": [2, 1]}), watermark_us=at_us(900))
    (row,) = dump_tables(engine)["revisions"]
    assert row[:4] == ("orders", START_US, 1, at_us(900))
    assert json.loads(row[4]) == {"lost": [2, 1]}


def test_a_window_that_is_forgotten_keeps_its_results(engine: Engine) -> None:
    """A window that is forgotten keeps its results, and is live no more."""
    conclusion = build_conclusion(lost={"b": pack_ids(1)})
    write_conclusions(engine, conclusion)
    other = START_US + WINDOW_US
    write_conclusions(engine, build_conclusion(replace(conclusion.result, window_start_us=other)))
    with engine.execution_options(writes=True).begin() as connection:
        parcels = {("orders", start_us, shard): b"p" for start_us in (START_US, other) for shard in (0, 1)}
        writer.write_changes(connection, writer.Changes(0, tallies=parcels))
        writer.drop_tallies(connection, [("orders", START_US)])
        assert [row["window_start_us"] for row in reader.read_live_windows(connection)] == [other]
    assert [row[1] for row in dump_tables(engine)["tallies"]] == [other, other]
    assert window(engine) == conclusion.result
    assert reader.read_lost_ids(engine, "orders", "b") == {id_bytes(1)}


def test_after_a_run_over_everything_nothing_is_live(engine: Engine) -> None:
    """Nothing will be judged again; results stay."""
    write_conclusions(engine, build_conclusion())
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, writer.Changes(0, tallies={("orders", START_US, 0): b"p"}))
        writer.drop_all_tallies(connection)
        assert list(reader.read_live_windows(connection)) == []
    assert dump_tables(engine)["tallies"] == []
    assert window(engine) is not None


def test_clearing_leaves_the_names_and_no_results(engine: Engine) -> None:
    """The schema's version, the lineage and the registry stay, and the number of the last write, which others know."""
    Registry(SubjectStore(engine, ManualClock())).register("orders", Schema.parse('"long"'))
    before = dump_tables(engine)
    write_conclusions(engine, build_conclusion(lost={"b": pack_ids(1)}, changed={}))
    with engine.execution_options(writes=True).begin() as connection:
        writer.clear_results(connection)
    assert dump_tables(engine) == before | {"meta": [*before["meta"], ("sequence", "1")]}
    assert [len(before[name]) for name in ("schemas", "subject_versions")] == [1, 1]


@pytest.mark.parametrize(
    "name", ["[bold]x[/]", "'; DROP TABLE windows; --", '"', "\\", "ü\u0000\U0001f600", "n" * 10_000]
)
def test_names_and_reasons_are_data(name: str, engine: Engine) -> None:
    """Markup, quotes, SQL and long texts come back as they went in."""
    base = build_conclusion().result
    nodes: tuple[NodeResult, ...] = tuple(replace(node, node=f"{place}{name}") for place, node in enumerate(base.nodes))
    result = replace(base, reasons=(name,), nodes=nodes)
    write_conclusions(engine, build_conclusion(result))
    assert window(engine) == result
