"""Laws of traced messages: whatever services do with headers, a message that arrives is never missing.

Several services send to several destinations and receive from them. Headers are made for a message, passed on from one
that was received, or shared by messages of which a client reads them later; spans are sampled or not, and end with an
error or not; messages arrive once, several times or never, with marks that can be read or not.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.integrations.opentelemetry import MESSAGE_HEADER
from hopwatch.probes.testing import batch_observations
from tests.support.examples import examples
from tests.support.traced_service import TracedService, close_services

SERVICES: Final = ("shop", "router", "billing")
TOPICS: Final = ("orders", "routed")

_SENDINGS = st.fixed_dictionaries(
    {
        "service": st.sampled_from(SERVICES),
        "topic": st.sampled_from(TOPICS),
        "headers": st.sampled_from(["own", "none", "mapping", "fixed", "shared", "passed on"]),
        "is_sampled": st.sampled_from([True, True, True, False]),
        "fails": st.sampled_from([False, False, False, True]),
        # Messages that are sent before the client has read the headers of this one.
        "read_after": st.integers(0, 3),
        "received_by": st.lists(st.sampled_from(SERVICES), max_size=4),
        "is_spoiled": st.sampled_from([False, False, False, False, True]),
    }
)


class World:
    """Services and the messages between them; a message is received as soon as its client has read its headers."""

    def __init__(self) -> None:
        """Start the services."""
        self.services = {name: TracedService(name) for name in SERVICES}
        self.shared: dict[str, list[Any]] = {name: [] for name in SERVICES}
        self.received: dict[str, list[Any]] = {name: [] for name in SERVICES}
        self.unread: list[tuple[int, dict[str, Any], Any]] = []
        self.missing: Counter[tuple[str, str]] = Counter()
        """Messages by destination and service that did not get them, or not in a form that can be read."""

    def send(self, plan: dict[str, Any]) -> None:
        """Send a message; the client reads its headers after some more messages."""
        sender = self.services[plan["service"]]
        headers: Any = {
            "own": [("own", b"1")],
            "none": [],
            "mapping": {},
            "fixed": (("own", b"1"),),
            "shared": self.shared[plan["service"]],
            "passed on": self.received[plan["service"]],
        }[plan["headers"]]
        with suppress(BufferError), sender.sending(plan["topic"], headers, is_sampled=plan["is_sampled"]):
            self._enqueue(plan, headers)

    def _enqueue(self, plan: dict[str, Any], headers: object) -> None:
        if plan["fails"]:
            raise BufferError
        self.unread.append((plan["read_after"], plan, headers))

    def read(self, *, at_end: bool = False) -> None:
        """Let clients read the headers of messages whose time has come, and give the messages to who receives them."""
        waiting, self.unread = self.unread, []
        for after, plan, headers in waiting:
            if after and not at_end:
                self.unread.append((after - 1, plan, headers))
                continue
            pairs = tuple(headers.items() if isinstance(headers, dict) else headers)
            if plan["is_spoiled"]:
                pairs = tuple((name, b"\xff" if name == MESSAGE_HEADER else value) for name, value in pairs)
            for name in plan["received_by"]:
                self.services[name].receive(pairs)
                self.received[name] = list(pairs)
            for name in SERVICES:
                if plan["is_spoiled"] or name not in plan["received_by"]:
                    self.missing[plan["topic"], name] += 1

    def close(self) -> dict[str, list[Batch]]:
        """End all services, and return what their probes have sent."""
        found = {name: service.close() for name, service in self.services.items()}
        close_services()
        return found


def stamped(batches: list[Batch], side: str) -> dict[str, set[bytes]]:
    """Return the ids of each stream that have a stamp of a side."""
    found: dict[str, set[bytes]] = {topic: set() for topic in TOPICS}
    for one in batches:
        seen = batch_observations(one)
        found[one.stream] |= {each.message_id for each in seen if getattr(each, f"{side}_us") is not None}
    return found


@settings(max_examples=examples(400))
@given(st.lists(_SENDINGS, max_size=30))
def test_a_message_that_arrives_is_never_missing(plans: list[dict[str, Any]]) -> None:
    """At each service no more messages are missing than it did not get, or could not read."""
    world = World()
    for plan in plans:
        world.send(plan)
        world.read()
    while world.unread:
        world.read(at_end=True)
    batches = world.close()
    left = [stamped(of_service, "out") for of_service in batches.values()]
    for name in SERVICES:
        arrived = stamped(batches[name], "in")
        for topic in TOPICS:
            missing = set().union(*(one[topic] for one in left)) - arrived[topic]
            assert len(missing) <= world.missing[topic, name]


@given(st.lists(st.tuples(st.sampled_from(TOPICS), st.booleans()), max_size=30))
def test_the_messages_that_are_missing_are_those_that_did_not_arrive(sent: list[tuple[str, bool]]) -> None:
    """Messages that have headers of their own, and whose spans are sampled, are named one by one."""
    shop, billing = TracedService("shop"), TracedService("billing")
    for topic, arrives in sent:
        headers = shop.send(topic)
        if arrives:
            billing.receive(headers)
    left, arrived = stamped(shop.close(), "out"), stamped(billing.close(), "in")
    close_services()
    counts = Counter(sent)
    for topic in TOPICS:
        assert len(left[topic]) == counts[topic, True] + counts[topic, False]
        assert arrived[topic] <= left[topic]
        assert len(left[topic] - arrived[topic]) == counts[topic, False]
