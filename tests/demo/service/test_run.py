"""Tests of a run of the service without brokers: what is said where a part of it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.link import RESTART_EXIT_CODE
from hopwatch.demo.monitor_process import MonitorDiedError
from hopwatch.demo.options import RunOptions, ServiceOptions
from hopwatch.demo.processes import NodeDiedError
from hopwatch.demo.server_process import free_ports
from hopwatch.demo.service.pipeline import MAX_INTERRUPTIONS, ServicePipeline
from hopwatch.demo.service.run import LateMonitor, add_interruptions
from hopwatch.demo.service.topics import ServiceTopics, read_topic_ids
from hopwatch.demo.stream import SERVICE_NODES
from hopwatch.monitor import settings
from hopwatch.monitor.errors import TransportError


@pytest.fixture
def topics() -> ServiceTopics:
    """Return the topics of a run, on brokers that are not there."""
    return ServiceTopics("127.0.0.1:1")


@pytest.fixture
def layout(tmp_path: Path, topics: ServiceTopics) -> Layout:
    """Return the files of a run."""
    plans = topics.plan_deliveries([9001, 9002])
    return create_layout(tmp_path / "run", gate=topics.gate, deliveries=plans, down_s=60)


def test_its_configuration_is_one_that_all_its_programs_read(layout: Layout) -> None:
    """The stream ends at one of two deliveries, each with retry topics of its own, and waits for a receiver."""
    found = settings.load(layout.config, flags={}, environ={})
    assert layout.nodes == SERVICE_NODES == found.stream_configs()["flights"].pathway.nodes
    assert found.streams["flights"].transit_us == layout.transit_s * 1_000_000 == 90_000_000
    assert {name: one.url for name, one in found.deliver.items()} == {
        "mainline": "http://127.0.0.1:9001/events",
        "others": "http://127.0.0.1:9002/events",
    }
    assert len({one.group_name(name) for name, one in found.deliver.items()}) == 2
    assert {one.rejected_url() for one in found.deliver.values()} == {plan.rejected_url for plan in layout.deliveries}


def test_a_monitor_that_fails_at_the_end_is_told(layout: Layout) -> None:
    """With its exit code, its last words and its log."""
    layout.config.write_text("nonsense")
    with pytest.raises(
        MonitorDiedError, match=r"^the monitor ended with exit code 2; its last words: .*monitor\.log\)$"
    ):
        LateMonitor(layout).stop()


def test_topics_that_cannot_be_made_are_told(layout: Layout, topics: ServiceTopics) -> None:
    """Before any process is started."""
    layout.config.write_text("nonsense")
    text = r"^the topics of the deliveries cannot be made; its last words: .*create-topics\.log\)$"
    with pytest.raises(NodeDiedError, match=text), ServicePipeline(layout, topics, RunOptions(layout.folder)):
        pass
    assert sorted(path.name for path in layout.logs.iterdir()) == ["create-topics.log"]


def test_a_topic_that_cannot_be_read_for_the_account_is_told() -> None:
    """The account is complete, or there is none."""
    (port,) = free_ports(1)
    with pytest.raises(
        TransportError, match=r"^the topic t cannot be read for the account: .*; look after the brokers"
    ):
        read_topic_ids(f"kafka://127.0.0.1:{port}/t", answer_s=0.5)


def test_killed_processes_blur_their_nodes() -> None:
    """A delivery both ends and norm, a broker none; other faults stay."""
    faults = Faults(1, {"router": NodeFaults(drop_ratio=0.1)}, (Kill("deliver", 3.0),))
    found = add_interruptions(faults, {"deliver"})
    assert found.blurred == {"norm", "mainline", "others"}
    assert (found.seed, found.nodes) == (faults.seed, faults.nodes)
    assert add_interruptions(faults, set()).blurred == frozenset()


def test_a_node_that_asks_for_it_is_started_again(layout: Layout, topics: ServiceTopics) -> None:
    """By its exit code; any other end by itself is an error, but for a sender that has sent all."""
    pipeline = ServicePipeline(layout, topics, RunOptions(layout.folder, service=ServiceOptions(message_count=5)))

    class Ended:
        """Process that has ended."""

        def __init__(self, code: int) -> None:
            self.returncode = code

        def poll(self) -> int:
            """Return its exit code."""
            return self.returncode

    pipeline._processes = {"router": Ended(RESTART_EXIT_CODE), "sender": Ended(0)}  # type: ignore[dict-item]  # all of a process that is asked for
    assert pipeline.watch() == ["router has ended, to be started again; it said nothing"]
    assert pipeline.interrupted == {"router"}
    assert pipeline.has_finished
    pipeline._restarts_s.clear()
    pipeline._interruptions["router"] = MAX_INTERRUPTIONS
    with pytest.raises(NodeDiedError, match=r"^router ended by itself with exit code 75; it said nothing"):
        pipeline.watch()
    pipeline._processes = {"norm": Ended(3)}  # type: ignore[dict-item]  # as above
    with pytest.raises(NodeDiedError, match=r"^norm ended by itself with exit code 3; it said nothing"):
        pipeline.watch()
