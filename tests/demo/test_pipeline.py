"""Tests of the four real processes: they move messages, die when killed, come back, and drain."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hopwatch.demo.entrance.outlets import build_spool_outlets
from hopwatch.demo.entrance.rejections import read_rejections
from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.links.loopback import SocketLinks
from hopwatch.demo.links.run_links import Links
from hopwatch.demo.pipeline import Pipeline
from hopwatch.demo.processes import RESTART_AFTER_S, NodeDiedError, read_last_line
from hopwatch.demo.stream import NODES
from hopwatch.demo.truth import NodeAction, Truth, count_entries, split_ids
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.limits import NOT_STAMPED
from tests.demo.hand_clock import HandClock
from tests.demo.spool_reader import read_spool

PATIENCE_S = 120.0


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return the files of a run."""
    return create_layout(tmp_path / "run")


@pytest.fixture
def links() -> Iterator[Links]:
    """Yield the links of a run."""
    with SocketLinks() as laid:
        yield laid


def until(condition: Callable[[], bool], pipeline: Pipeline) -> None:
    """Watch the pipeline until a condition holds; give up after a generous time."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        pipeline.watch()
        assert time.monotonic() < end_s
        threading.Event().wait(0.02)


def drained(pipeline: Pipeline) -> list[str]:
    """Drain the pipeline and return the nodes in the order in which they ended."""
    order: list[str] = []
    end_s = time.monotonic() + PATIENCE_S
    while (node := pipeline.drain()) is not None:
        order += [] if node in order else [node]
        assert time.monotonic() < end_s
        threading.Event().wait(0.02)
    return order


def stamped(batches: list[Batch], node: str, lag: str) -> set[bytes]:
    """Return the messages that the probes of a node stamped on one side."""
    return set(_stamped(batches, node, lag))


def _stamped(batches: list[Batch], node: str, lag: str) -> Iterator[bytes]:
    for batch in batches:
        if batch.node == node and (packed := getattr(batch, lag)):
            for place in np.flatnonzero(np.frombuffer(packed, "<i8") != NOT_STAMPED):
                yield batch.message_ids[16 * place : 16 * place + 16]


def test_messages_pass_and_the_probes_say_what_the_truth_says(layout: Layout, links: Links) -> None:
    """Without a kill nothing is lost but what was dropped, and the probes stamped exactly what truth wrote down."""
    faults = Faults(0, {"router": NodeFaults(drop_ratio=0.05, duplicate_ratio=0.05), "norm": NodeFaults(delay_s=0.3)})
    with Pipeline(layout, links, faults, 2000.0) as pipeline:
        until(lambda: count_entries(layout.truth_log("connector")) > 2000, pipeline)
        assert drained(pipeline) == list(NODES)
    truth, batches = Truth(layout.truth_logs()), read_spool(layout)
    dropped = split_ids(truth.ids("router", NodeAction.DROPPED))
    assert dropped
    assert split_ids(truth.lost) == dropped
    assert stamped(batches, "router", "lag_in_us") - stamped(batches, "router", "lag_out_us") == dropped
    assert stamped(batches, "ingest", "lag_out_us") == split_ids(truth.created)
    assert stamped(batches, "connector", "lag_out_us") == split_ids(truth.delivered)
    assert sum(batch.kind is BatchKind.BYE for batch in batches) == len(NODES)
    lines = (layout.output / "flights.jsonl").read_text().splitlines()
    assert len(lines) == truth.count("connector", NodeAction.HANDED_ON) > len(truth.delivered)
    assert [layout.log(node).read_text() for node in NODES] == [""] * 4


def test_a_killed_node_comes_back_and_loses_only_what_it_held(layout: Layout, links: Links) -> None:
    """Kill and restart are told, the others wait meanwhile, and what is lost was held by norm or on its way there."""
    clock = HandClock()
    faults = Faults(0, {"norm": NodeFaults(delay_s=0.2)}, (Kill("norm", 5.0), Kill("norm", 6.0)))
    with Pipeline(layout, links, faults, 2000.0, now_s=clock) as pipeline:
        until(lambda: count_entries(layout.truth_log("connector")) > 500, pipeline)
        clock.s = 6.5
        assert pipeline.watch() == ["norm is killed (SIGKILL)"]
        assert pipeline.watch() == []
        clock.s = 5.0 + RESTART_AFTER_S + 1.5
        assert pipeline.watch() == ["norm is started again", "norm is killed (SIGKILL)"]
        clock.s = 20.0
        before = count_entries(layout.truth_log("connector"))
        until(lambda: count_entries(layout.truth_log("connector")) > before + 500, pipeline)
        assert drained(pipeline) == list(NODES)
    truth, batches = Truth(layout.truth_logs()), read_spool(layout)
    lost = split_ids(truth.lost)
    assert lost
    assert lost <= stamped(batches, "router", "lag_out_us")
    assert not lost & stamped(batches, "connector", "lag_in_us")
    assert len(truth.created) == len(truth.delivered) + len(lost)


def test_a_killed_ingest_goes_on_with_its_numbers(layout: Layout, links: Links) -> None:
    """The restarted process creates other messages than the killed one: no flight of the CSV twice."""
    clock = HandClock()
    with Pipeline(layout, links, Faults(0, {}, (Kill("ingest", 1.0),)), 2000.0, now_s=clock) as pipeline:
        until(lambda: count_entries(layout.truth_log("connector")) > 100, pipeline)
        clock.s = 1.0
        pipeline.watch()
        drained(pipeline)  # starts it again, so that what waits in its socket would be drained too
    truth = Truth(layout.truth_logs())
    assert len(truth.created) == truth.count("ingest", NodeAction.CREATED)
    lines = [line.split('"carrier"')[1] for line in (layout.output / "flights.jsonl").read_text().splitlines()]
    assert len(set(lines)) == len(lines)


def test_a_node_that_dies_by_itself_is_told(layout: Layout, links: Links) -> None:
    """The reader learns which node it was, how it ended, what it said last, and where the rest stands."""
    with Pipeline(layout, links, Faults(), 2000.0) as pipeline:
        os.kill(pipeline._processes["router"].pid, signal.SIGTERM)
        with pytest.raises(NodeDiedError) as raised:
            until(lambda: False, pipeline)
    log = layout.log("router")
    assert str(raised.value) == f"router ended by itself with exit code -15; it said nothing ({log})"


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[tuple[Layout, Links]]:
    """Yield the files and links of a run with a gate."""
    folder = tmp_path / "gated"
    with SocketLinks(build_spool_outlets(folder)) as laid:
        yield create_layout(folder, gate=laid.gate), laid


def test_behind_a_gate_bad_events_are_rejected_and_a_killed_ingest_loses_none_of_the_others(
    gated: tuple[Layout, Links],
) -> None:
    """The sender ends first, then the gate; ingest finds again what it held, and its segments are gone at the end."""
    layout, links = gated
    clock, faults = HandClock(), Faults(0, {"gate": NodeFaults(reject_ratio=0.05)}, (Kill("ingest", 1.0),))
    with Pipeline(layout, links, faults, 500.0, now_s=clock) as pipeline:
        until(lambda: count_entries(layout.truth_log("connector")) > 200, pipeline)
        clock.s = 1.0
        assert pipeline.watch() == ["ingest is killed (SIGKILL)"]
        before = count_entries(layout.truth_log("gate"))
        until(lambda: count_entries(layout.truth_log("gate")) > before + 500, pipeline)
        assert drained(pipeline) == ["sender", "gate", *NODES]
    truth, batches = Truth(layout.truth_logs()), read_spool(layout)
    rejected, created = split_ids(truth.ids("gate", NodeAction.REJECTED)), split_ids(truth.created)
    assert rejected == stamped(batches, "gate", "lag_in_us") - stamped(batches, "gate", "lag_out_us")
    assert stamped(batches, "gate", "lag_out_us") == created - rejected
    assert split_ids(truth.ids("ingest", NodeAction.HANDED_ON)) == created - rejected
    assert not list(layout.folder.glob("events/*/*.seg"))
    kinds = read_rejections(layout.rejections)
    assert sum(kind.injected for kind in kinds) == sum(kind.rejected for kind in kinds) == len(rejected)


def test_a_gate_that_dies_by_itself_is_told(gated: tuple[Layout, Links]) -> None:
    """As a node is, with its last words."""
    layout, links = gated
    with Pipeline(layout, links, Faults(), 500.0) as pipeline:
        until(lambda: count_entries(layout.truth_log("gate")) > 10, pipeline)
        os.kill(pipeline._processes["gate"].pid, signal.SIGKILL)
        text = r"^gate ended by itself with exit code -9; its last words: hopwatch: the gate is at http://127.0.0.1:"
        with pytest.raises(NodeDiedError, match=text):
            until(lambda: False, pipeline)


@pytest.mark.parametrize(("code", "exit_code"), [(3, 3), (1, 70), (-9, 70)])
def test_a_link_that_failed_is_a_dependency(code: int, exit_code: int) -> None:
    """The demo ends with the exit code of a node that ended for a known reason."""
    assert NodeDiedError("norm ended", code).exit_code == exit_code


def test_a_node_that_fails_on_its_way_out_is_told(layout: Layout, links: Links) -> None:
    """An ugly end while draining is no clean end."""
    with Pipeline(layout, links, Faults(), 2000.0) as pipeline:
        until(lambda: count_entries(layout.truth_log("connector")) > 10, pipeline)
        os.kill(pipeline._processes["ingest"].pid, signal.SIGKILL)
        pipeline._processes["ingest"].wait()
        with pytest.raises(NodeDiedError, match=r"^ingest ended by itself with exit code -9; it said nothing"):
            pipeline.drain()


def test_no_process_outlives_the_pipeline(layout: Layout, links: Links) -> None:
    """All four processes are gone after the block, whatever error ends it."""

    class SomethingElseError(Exception):
        """Error of a test."""

    pipeline = Pipeline(layout, links, Faults(), 2000.0)
    with pytest.raises(SomethingElseError), pipeline:
        raise SomethingElseError
    assert all(process.returncode is not None for process in pipeline._processes.values())


def test_last_words_are_the_last_line(tmp_path: Path) -> None:
    """Of a traceback the line with the error; nothing if there is no log."""
    log = tmp_path / "log"
    assert read_last_line(log) == "it said nothing"
    log.write_text("Traceback …\n  File …\nOSError: disk full\n\n")
    assert read_last_line(log) == "its last words: OSError: disk full"
