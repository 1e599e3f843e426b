"""The links of a run, kept by the process that starts the nodes: they outlive a node that is killed."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from hopwatch.demo.entrance.outlets import GateOutlets, build_spool_outlets
from hopwatch.demo.links.ends import Ends, TopicEnds
from hopwatch.demo.links.loopback import SocketLinks
from hopwatch.demo.stream import NODES, next_node
from hopwatch.monitor import settings, topics
from hopwatch.monitor.errors import HopwatchError, TransportError
from hopwatch.probes.contract.kafka import SCHEME, KafkaAccess, KafkaPlace

PARTITIONS: Final = 2
"""Of the topic of observations: one for each core of a small machine."""
RETENTION_HOURS: Final = 1
"""Retention of topics that a killed demo could not delete."""


class Links(Protocol):
    """The links between the nodes of a run. A context manager: the links are removed at its end."""

    words: str
    """Description for the console."""
    observations_url: str
    """URL of the topic that the probes write to; empty where they spool."""
    left_behind: str
    """Topics that could not be deleted, and why."""
    gate: GateOutlets | None
    """Outlets of the gate, if there is one."""

    def check(self) -> None:
        """Check that they can be laid."""

    def __enter__(self) -> Self:
        """Lay the links."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take them away."""

    def ends(self, node: str) -> Ends:
        """Return the ends of a node's links, for the node's process."""

    def descriptors(self, node: str) -> tuple[int, ...]:
        """Return the file descriptors that the process of a node inherits."""


class TopicLinks:
    """One topic a link, and one for the observations; they are made for this run, and deleted behind it."""

    def __init__(
        self,
        brokers: str,
        access: KafkaAccess,
        run: str = "",
        *,
        is_watched_here: bool = True,
        has_gate: bool = False,
    ) -> None:
        """Name the topics after the run, by default one that no other run has; none is made yet.

        Observations have a topic of the run unless it is watched elsewhere.
        """
        self._prefix = f"hopwatch-demo-{run or uuid.uuid4().hex[:12]}"
        self._brokers = brokers
        self._access = access
        self._observations = KafkaPlace(brokers, f"{self._prefix}-observations")
        self.words = f"topics of this run, deleted at its end: {self._prefix}-… on {brokers}"
        self.observations_url = str(self._observations) if is_watched_here else ""
        self.left_behind = ""
        self._fed = NODES if has_gate else NODES[1:]
        """The nodes that a topic leads to."""
        self._rejected = KafkaPlace(brokers, f"{self._prefix}-rejected")
        entered = KafkaPlace(brokers, self._topic(NODES[0]))
        self.gate = GateOutlets(str(entered), str(self._rejected)) if has_gate else None

    def check(self) -> None:
        """Ask the brokers for a topic.

        Raises:
            TransportError: no broker answers, or none lets us in.
        """
        topics.describe_topic(self._observations, self._access)

    def __enter__(self) -> Self:
        """Make the topics, on one broker each: what is in them is not worth more.

        Raises:
            TransportError: no broker answers, or none lets us in.
            ConfigurationError: the brokers do not take such topics.
        """
        try:
            for place in self._places():
                self._make(place, PARTITIONS if place == self._observations else 1)
        except HopwatchError:
            self._delete()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the topics; what hinders it is kept to be told, and hides nothing else that went wrong."""
        self._delete()

    def ends(self, node: str) -> TopicEnds:
        """Return the topics before and behind a node."""
        following = next_node(node)
        return TopicEnds(
            self._brokers,
            inlet_topic=self._topic(node) if node in self._fed else "",
            outlet_topic=self._topic(following) if following else "",
            is_gated=self.gate is not None and node == NODES[0],
        )

    def descriptors(self, node: str) -> tuple[int, ...]:  # noqa: ARG002 - a topic is found by its name
        """Return none."""
        return ()

    def _make(self, place: KafkaPlace, partitions: int) -> None:
        topics.create_topic(
            place,
            self._access,
            partitions=partitions,
            replication=1,
            min_insync=1,
            retention_hours=RETENTION_HOURS,
        )

    def _delete(self) -> None:
        try:
            # Readers are known by the names of what they read.
            topics.delete_topics(self._places(), self._access, [self._topic(node) for node in self._fed])
        except TransportError as failed:
            self.left_behind = f"the topics {self._prefix}-… are left behind: {failed}"

    def _topic(self, node: str) -> str:
        """Return the name of what goes to a node."""
        return f"{self._prefix}-{node}"

    def _places(self) -> list[KafkaPlace]:
        observations = [self._observations] if self.observations_url else []
        rejected = [self._rejected] if self.gate else []
        return [*observations, *rejected, *(KafkaPlace(self._brokers, self._topic(node)) for node in self._fed)]


def build_links(brokers: str, *, is_watched_here: bool = True, gate_folder: Path | None = None) -> Links:
    """Return the links of a run: through Kafka, or through sockets where ``brokers`` is empty.

    A gate is the entrance where there is a ``gate_folder``, below which it spools what does not go through Kafka.

    Raises:
        SettingsError: what the environment says of access to the brokers cannot be.
    """
    if not brokers:
        return SocketLinks(build_spool_outlets(gate_folder) if gate_folder else None)
    return TopicLinks(brokers, load_access(), is_watched_here=is_watched_here, has_gate=gate_folder is not None)


def check_observations(url: str) -> None:
    """Check that a topic which others read will do for observations; a spool needs nothing.

    Raises:
        TransportError: no broker answers, or the topic is not there or without the broker's time of arrival.
        SettingsError: what the environment says of access to the brokers cannot be.
    """
    if url.startswith(SCHEME):
        topics.require_topic(KafkaPlace.parse(url), load_access())


def load_access() -> KafkaAccess:
    """Return what the environment says of access to the brokers.

    Raises:
        SettingsError: it cannot be.
    """
    return settings.load(None, flags={}, environ=os.environ).transport.access
