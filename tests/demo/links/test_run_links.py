"""Tests of the links of a run: which ends each node is given, which topics are made, and that they go again."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from hopwatch.demo.links import run_links
from hopwatch.demo.links.ends import SocketEnds, TopicEnds
from hopwatch.demo.links.gate_spool_inlet import GateSpoolInlet
from hopwatch.demo.links.loopback import SocketLinks
from hopwatch.demo.links.run_links import TopicLinks, build_links
from hopwatch.demo.stream import NODES
from hopwatch.monitor.errors import SettingsError, TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace

ACCESS = KafkaAccess()
TOPICS = [f"hopwatch-demo-r-{name}" for name in ("observations", "router", "norm", "connector")]


class PaperTopics:
    """Stands for ``monitor.topics``; its brokers may fail after so many topics, or when they are to delete."""

    def __init__(self) -> None:
        """Start without topics, and with brokers that do not fail."""
        self.made: dict[str, dict[str, int]] = {}
        self.groups: list[str] = []
        self.most = 99
        self.is_down = False

    def create_topic(self, place: KafkaPlace, access: KafkaAccess, **how: int) -> None:
        """Make a topic."""
        assert access == ACCESS
        if len(self.made) == self.most:
            raise TransportError("the brokers are gone")
        self.made[place.topic] = how

    def delete_topics(self, places: Sequence[KafkaPlace], access: KafkaAccess, groups: Sequence[str]) -> None:
        """Delete topics."""
        assert access == ACCESS
        if self.is_down:
            raise TransportError("the brokers are gone")
        for place in places:
            self.made.pop(place.topic, None)
        self.groups += groups


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> PaperTopics:
    """Return the topics that links make on paper."""
    made = PaperTopics()
    monkeypatch.setattr(run_links, "topics", made)
    return made


def test_sockets_lead_from_node_to_node() -> None:
    """Each node inherits its own, and is told the port of the next; behind the run they are closed."""
    links = build_links("")
    assert isinstance(links, SocketLinks)
    links.check()
    with links:
        ends = [links.ends(node) for node in NODES]
        assert [links.descriptors(node) for node in NODES] == [(end.listen_fd,) for end in ends]
        for end, following in pairwise(ends):
            with socket.socket(fileno=socket.dup(following.listen_fd)) as listener:
                assert listener.getsockname()[1] == end.next_port
        assert ends[-1].next_port == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ends[0].next_port))


def test_observations_that_are_watched_elsewhere_have_no_topic_of_the_run(paper: PaperTopics) -> None:
    """The links have theirs all the same."""
    with TopicLinks("h:1", ACCESS, "r", is_watched_here=False) as links:
        assert list(paper.made) == TOPICS[1:]
        assert links.observations_url == ""
    assert paper.made == {}


def test_behind_a_gate_ingest_takes_events_from_its_spool(tmp_path: Path) -> None:
    """Behind a gate, ingest reads the gate's spool alone, and the gate has its two places to write to."""
    links = build_links("", gate_folder=tmp_path)
    assert links.gate == (f"spool:{tmp_path}/events", f"spool:{tmp_path}/rejected")
    with links:
        ends = [links.ends(node) for node in NODES]
    assert [end.is_gated for end in ends] == [True, False, False, False]
    assert isinstance(ends[0], SocketEnds)
    assert ends[0].events == f"{tmp_path}/events"
    assert isinstance(ends[0].inlet(), GateSpoolInlet)


def test_behind_a_gate_a_topic_leads_to_ingest_too(paper: PaperTopics) -> None:
    """One more has what is rejected; all of them go again, with ingest's reader."""
    links = TopicLinks("h:1", ACCESS, "r", has_gate=True)
    names = ["observations", "rejected", "ingest", "router", "norm", "connector"]
    with links:
        assert [*paper.made] == [f"hopwatch-demo-r-{name}" for name in names]
        assert links.gate == ("kafka://h:1/hopwatch-demo-r-ingest", "kafka://h:1/hopwatch-demo-r-rejected")
        assert links.ends("ingest") == TopicEnds("h:1", "hopwatch-demo-r-ingest", TOPICS[1], is_gated=True)
        assert not links.ends("router").is_gated
    assert paper.made == {}
    assert paper.groups == [f"hopwatch-demo-r-{node}" for node in NODES]


def test_topics_lead_from_node_to_node(paper: PaperTopics) -> None:
    """One of one partition before every node but the first, one for observations; they and their readers go again."""
    links = TopicLinks("h:1", ACCESS, "r")
    with links:
        assert list(paper.made) == TOPICS
        assert {how["partitions"] for topic, how in paper.made.items() if topic != TOPICS[0]} == {1}
        assert [links.ends(node) for node in NODES] == [
            TopicEnds("h:1", "", TOPICS[1]),
            TopicEnds("h:1", TOPICS[1], TOPICS[2]),
            TopicEnds("h:1", TOPICS[2], TOPICS[3]),
            TopicEnds("h:1", TOPICS[3], ""),
        ]
        assert links.descriptors("norm") == ()
        assert links.observations_url == f"kafka://h:1/{TOPICS[0]}"
        assert links.words == "topics of this run, deleted at its end: hopwatch-demo-r-… on h:1"
    assert (paper.made, paper.groups, links.left_behind) == ({}, TOPICS[1:], "")


def test_every_run_has_topics_of_its_own() -> None:
    """Two runs on one broker never mix."""
    assert TopicLinks("h:1", ACCESS).observations_url != TopicLinks("h:1", ACCESS).observations_url


def test_topics_that_were_made_go_when_others_cannot_be(paper: PaperTopics) -> None:
    """A run that does not start leaves nothing behind."""
    paper.most = 2
    with pytest.raises(TransportError, match=r"^the brokers are gone$"):
        TopicLinks("h:1", ACCESS, "r").__enter__()
    assert paper.made == {}


def test_topics_that_cannot_be_deleted_are_told(paper: PaperTopics) -> None:
    """And nothing else that went wrong is hidden by it."""
    links = TopicLinks("h:1", ACCESS, "r")
    paper.is_down = True
    with pytest.raises(ZeroDivisionError), links:
        raise ZeroDivisionError
    assert links.left_behind == "the topics hopwatch-demo-r-… are left behind: the brokers are gone"


def test_access_stands_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does for probes and monitor; what cannot be is told before anything starts."""
    monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SECURITY_PROTOCOL", "SSL")
    links = build_links("h:1")
    assert isinstance(links, TopicLinks)
    assert links._access == KafkaAccess("SSL")
    monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SECURITY_PROTOCOL", "SLS")
    with pytest.raises(SettingsError, match=r"security_protocol is one of PLAINTEXT, SSL, .*; got 'SLS'"):
        build_links("h:1")
