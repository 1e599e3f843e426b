"""Tests of registrations as a stream: each is written, in order, whoever made it, and whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.registry.changes import ChangeRecord, RegistryChanges
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.subjects import Registry
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import BROKEN, FIRST, SECOND, schema


class Topic:
    """Topic in memory; ``why`` is why it takes nothing."""

    def __init__(self) -> None:
        """Begin empty."""
        self.records: list[ChangeRecord] = []
        self.why = ""

    def write(self, records: Sequence[ChangeRecord]) -> str:
        """Take records, the first of them even where it fails."""
        self.records += records[:1] if self.why else records
        return self.why


def test_a_record_says_all_of_a_version() -> None:
    """Under a key of its own, so that a compacted topic keeps each."""
    shelf, topic = MemoryShelf(), Topic()
    changes = RegistryChanges(shelf, topic, lambda _: None)
    Registry(shelf).register("orders", schema(FIRST))
    changes.step()
    Registry(shelf).register("orders", schema(SECOND))
    changes.step()
    changes.step()
    assert [(one.key, orjson.loads(one.value)) for one in topic.records] == [
        (
            b"orders/%d" % version,
            {
                "subject": "orders", "version": version, "id": version,
                "fingerprint": schema(said).fingerprint.hex(), "schema": said,
            },
        )
        for version, said in ((1, FIRST), (2, SECOND))
    ]  # fmt: skip


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.sampled_from([FIRST, SECOND, BROKEN]), st.sampled_from(["", "full", "down"])
    )
)


@given(STEPS)
def test_nothing_is_left_out(steps: list[tuple[str, object, str]]) -> None:
    """Each version is written at least once and in order, however often the topic or the store fails."""
    shelf, topic, heard = MemoryShelf(), Topic(), list[str]()
    registry = Registry(shelf)
    registry.set_level(CompatibilityLevel.NONE)
    changes = RegistryChanges(shelf, topic, heard.append)
    for subject, said, fault in steps:
        registry.register(subject, schema(said))
        topic.why = "it is full" if fault == "full" else ""
        shelf.down = "the store is down" if fault == "down" else ""
        changes.step()
        shelf.down = ""
    topic.why = ""
    changes.step()
    firsts = list(dict.fromkeys(one.key for one in topic.records))
    for subject, entries in shelf.versions.items():
        keys = [f"{subject}/{entry.version}".encode() for entry in entries]
        assert [one for one in firsts if one in keys] == keys
    assert not heard or heard[-1] == "all registrations are written again"


def test_it_ends_when_it_is_told_to() -> None:
    """After the look that is under way."""
    stop = Event()
    stop.set()
    RegistryChanges(MemoryShelf(), Topic(), lambda _: None).run(stop)
