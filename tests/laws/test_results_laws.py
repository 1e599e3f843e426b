"""Laws of the topic of results: whatever happens between, it ends as the store stands, and no key goes back."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from hopwatch.api.results_topic import publisher
from hopwatch.monitor.errors import HopwatchError
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import dialect, fencing, schema
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.examples import examples
from tests.support.results_topic import (
    Fault,
    MemoryTopic,
    MemoryWriter,
    build_publisher,
    compact,
    decode,
    find_backward_steps,
    read_expected,
)
from tests.support.spool import START_US, STREAM_CONFIGS

writes = st.tuples(
    st.just("write"), st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), st.sampled_from(Status)
)
steps = st.one_of(
    writes,
    st.sampled_from(["publish", "fail", "lose answer", "kill", "overtake", "topic anew", "begin anew"]).map(
        lambda what: (what, [], Status.OPEN)
    ),
)


class World:
    """A store, a topic, and the publisher of the run that began last."""

    def __init__(self, folder: Path) -> None:
        """Begin with nothing."""
        self.engine: Engine = dialect.create_engine(f"sqlite:///{folder}/store.db")
        schema.prepare_store(self.engine)
        self.folder, self.topic, self.runs, self.version = folder, MemoryTopic(), 0, 0
        self.start()

    def start(self) -> None:
        """Start another run, as after a kill."""
        self.runs += 1
        fencing.claim_store(self.engine, self.folder / "nothing", STREAM_CONFIGS, "", f"run {self.runs}")
        self.writer: MemoryWriter = self.topic.writer()
        self.publisher = build_publisher(self.engine, self.writer, f"run {self.runs}")

    def do(self, what: str, minutes: list[int], status: Status) -> None:
        """Take a step."""
        match what:
            case "write":
                self.version += 1
                made = build_conclusion(status=status).result
                ones = [
                    replace(made, window_start_us=START_US + minute * WINDOW_US, known=self.version)
                    for minute in minutes
                ]
                nodes = [tuple(replace(node, seen=self.version) for node in one.nodes) for one in ones]
                results = [replace(one, nodes=of) for one, of in zip(ones, nodes, strict=True)]
                write_conclusions(self.engine, *map(build_conclusion, results))
            case "kill":
                self.start()
            case "topic anew":
                # It was deleted and made again, while no transaction was under way.
                self.topic = MemoryTopic(f"results id-{self.topic.epoch + 2}", epoch=self.topic.epoch)
                self.start()
            case "begin anew":
                fencing.begin_anew(self.engine, self.folder / "nothing")
                self.start()
            case _:
                self.publish(what)

    def publish(self, what: str) -> None:
        """Publish some windows, with a fault or not."""
        writer = self.writer
        writer.fault = {"fail": Fault.BEFORE, "lose answer": Fault.AFTER}.get(what)
        writer.meanwhile = self.overtake if what == "overtake" else None
        try:
            self.publisher.publish_next()
        except HopwatchError:
            assert what != "publish"
        writer.fault = writer.meanwhile = None

    def overtake(self) -> None:
        """Let another run take the store, change windows and publish them."""
        self.start()
        self.do("write", [0, 1, 2], Status.AMENDED)
        while self.publisher.publish_next():
            pass


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction have two windows of two nodes."""
    monkeypatch.setattr(publisher, "MAX_RECORDS", 4)


@given(st.lists(steps, max_size=14))
@settings(max_examples=examples(60))
def test_the_topic_ends_as_the_store_stands(taken: list[tuple[str, list[int], Status]]) -> None:
    """After kills, outages, lost answers and other runs: 0 cells differ, and the sequence of no key goes back."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for step in taken:
            world.do(*step)
        while world.publisher.publish_next():
            pass
        told = {key: decode(world.engine, value) for key, value in compact(world.topic.records).items()}
        expected = read_expected(world.engine)
        assert {key: told[key] for key in expected} == expected
        assert find_backward_steps(world.engine, world.topic.records) == []
        assert not world.publisher.publish_next()
        world.engine.dispose()
