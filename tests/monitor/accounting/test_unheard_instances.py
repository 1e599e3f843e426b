"""Tests of what is known of instances that were not heard: by their folders, and by records that could not be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.unheard_instances import (
    SpoolFolder,
    UnheardInstances,
    folder_of,
    is_instance_folder,
    parse_instances,
)
from hopwatch.monitor.kernel.books import Book
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.segment import MAX_FOLDER_CHARS, folder_name

TERMS = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
RULES = {
    "orders": StreamConfig(Pathway.parse("a -> b"), TERMS, ignore_nodes=("audit", "trail.log")),
    "orders.v2": StreamConfig(Pathway.parse("a.x -> b"), TERMS),
    "_odd": StreamConfig(Pathway.parse("a"), TERMS),
}
EPOCH = 1_700_000_000_000_000
LONG = "p" * MAX_FOLDER_CHARS


def unread(path: str, reason: str = "bad_crc", arrival_us: int = 7) -> SetAside:
    """Return a record that could not be read."""
    return SetAside(path, 3, 9, arrival_us, reason, "why")


def read_folder(folder: str) -> list[tuple[str, str, str, int | None]]:
    """Return the instances of all streams whose folder may have this name."""
    return [(stream, *found) for stream, of in RULES.items() for found in parse_instances(folder, stream, of)]


def books_of(unheard: UnheardInstances) -> list[Book]:
    """Return the books of all streams."""
    return [book for stream, of in RULES.items() for book in unheard.books(stream, of)]


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        (f"orders.a.host-1.{EPOCH}", [("orders", "a", "host-1", EPOCH)]),
        (f"orders.a.host.example.{EPOCH}", [("orders", "a", "host.example", EPOCH)]),
        (f"orders.nrom.host-1.{EPOCH}", [("orders", "nrom", "host-1", EPOCH)]),
        (f"orders.audit.host-1.{EPOCH}", []),
        (f"orders.trail.log.host-1.{EPOCH}", []),
        (f"orders.auditor.host-1.{EPOCH}", [("orders", "auditor", "host-1", EPOCH)]),
        (f"orders.v2.a.x.p.{EPOCH}", [("orders", "v2", "a.x.p", EPOCH), ("orders.v2", "a.x", "p", EPOCH)]),
        (folder_name(f"orders.b.p p.{EPOCH}"), [("orders", "b", "p-p", EPOCH)]),
        (folder_name(f"_odd.a.p.{EPOCH}"), [("_odd", "a", "p", EPOCH)]),
        (folder_name(f"orders.b.{LONG}.{EPOCH}"), [("orders", "b", "", None)]),
        (f"orders.a.{EPOCH}", []),
        ("orders", []),
        ("orders.a.host-1.now", []),
        (f"payments.a.host-1.{EPOCH}", []),
        (f"_hopwatch.monitor.pulse.{EPOCH}", []),
    ],
)
def test_a_folder_says_whose_it_is(folder: str, found: list[tuple[str, str, str, int | None]]) -> None:
    """Stream, node, probe and epoch; each of those that it may mean, as names may have dots."""
    assert read_folder(folder) == found


NAMES = st.text(st.characters(), min_size=1, max_size=200)


@given(
    st.sampled_from([(stream, node) for stream, rules in RULES.items() for node in rules.pathway.nodes]),
    NAMES,
    st.integers(0, 10**18 - 1),
)
def test_the_folder_of_an_instance_says_its_node(place: tuple[str, str], probe: str, epoch_us: int) -> None:
    """The stream and node of any probe are among those that its folder may mean, with its epoch."""
    found = read_folder(folder_name(f"{place[0]}.{place[1]}.{probe}.{epoch_us}"))
    of_place = [epoch for stream, node, _, epoch in found if (stream, node) == place]
    assert set(of_place) in ({epoch_us}, {None})


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/spool/host/orders.a.p.1/0000000000.seg", "orders.a.p.1"), ("hopwatch.observations/3", None)],
)
def test_a_record_of_a_spool_stood_in_a_folder(path: str, folder: str | None) -> None:
    """One of a topic stood in a partition."""
    assert folder_of(unread(path)) == folder


SPOOLED = f"/spool/orders.a.p.{EPOCH}/0000000000.seg"
ANYWHERE = "/spool/backup/0000000000.seg"
PASSED_ON = f"/spool/http-records.host-7.{EPOCH}/0000000000.seg"
OF_ANOTHER = f"/spool/payments.a.p.{EPOCH}/0000000000.seg"
TOPIC = "observations/0"


@pytest.mark.parametrize(
    ("path", "reason", "of_folder", "of_anybody"),
    [
        (SPOOLED, "bad_crc", True, False),
        (SPOOLED, "foreign_file", True, False),
        (SPOOLED, "unknown_schema", True, False),
        (SPOOLED, "unknown_node", False, False),
        (SPOOLED, "unknown_stream", False, False),
        (ANYWHERE, "bad_crc", False, True),
        (ANYWHERE, "foreign_file", False, False),
        (PASSED_ON, "bad_crc", False, True),
        (PASSED_ON, "foreign_file", False, True),
        (OF_ANOTHER, "bad_crc", False, False),
        (TOPIC, "unknown_schema", False, True),
        (TOPIC, "malformed", False, True),
        (TOPIC, "no_arrival_time", False, True),
        (TOPIC, "bad_marker", False, False),
        (TOPIC, "oversized", False, False),
        (TOPIC, "unknown_stream", False, False),
        (TOPIC, "unknown_node", False, False),
        (TOPIC, "ignored_node", False, False),
    ],
)
def test_whose_gap_an_unreadable_record_is(path: str, reason: str, of_folder: bool, of_anybody: bool) -> None:  # noqa: FBT001 - two columns of the table
    """Of the folder's instance, of an unknown sender, or nobody's: SEMANTICS.md, "What is set aside"."""
    unheard = UnheardInstances()
    unheard.note_record(unread(path, reason), RULES)
    books = [(book.key, book.first_arrival_us, book.last_arrival_us, book.runs) for book in books_of(unheard)]
    assert books == [(("orders", "a", "p", EPOCH), 7, 7, ())] * of_folder
    assert list(unheard.records.values()) == [Hole(path, 3, 3, 7, 7)] * of_anybody


def test_a_folder_is_known_from_its_first_arrival_to_its_last() -> None:
    """A folder lasts from first to last arrival, in any order of notes, and without an epoch if its name was cut."""
    unheard, name = UnheardInstances(), folder_name(f"orders.b.{LONG}.{EPOCH}")
    for moment_us in (9, 5, 8):
        unheard.note_folder(SpoolFolder(name, moment_us, moment_us))
    (book,) = books_of(unheard)
    assert (book.epoch_us, book.first_arrival_us, book.last_arrival_us) == (5, 5, 9)


@pytest.mark.parametrize("reason", ["unknown_stream", "ignored_node"])
def test_a_folder_with_a_record_that_was_read_is_of_who_wrote_it(reason: str) -> None:
    """A folder with a readable record belongs to the record's sender, in any order of name and record."""
    unheard, folder = UnheardInstances(), SpoolFolder(f"orders.dlq.p.{EPOCH}", 7, 7)
    unheard.note_folder(folder)
    assert len(list(books_of(unheard))) == 1
    unheard.note_record(unread(f"/spool/{folder.name}/0000000000.seg", reason), RULES)
    for _ in range(2):
        unheard.note_folder(folder)
        unheard.note_record(unread(f"/spool/{folder.name}/0000000001.seg"), RULES)
        assert list(books_of(unheard)) == []
    unheard.forget(8)
    assert unheard.read == {}


def test_what_is_long_past_is_forgotten() -> None:
    """Records and folders that arrived before a moment that no window asks for."""
    unheard = UnheardInstances()
    for number, arrival_us in enumerate((4, 5)):
        unheard.note_folder(SpoolFolder(f"orders.a.p.{number}", arrival_us, arrival_us))
        unheard.note_record(unread(f"observations/{number}", "malformed", arrival_us), RULES)
    unheard.forget(5)
    assert list(unheard.folders) == ["orders.a.p.1"]
    assert [place for place, _ in unheard.records] == ["observations/1"]


@pytest.mark.parametrize(
    ("folder", "is_one"),
    [(f"orders.a.p.{EPOCH}", True), ("backup", False), ("host.1", False), (folder_name(f"s.n.{LONG}.1"), True)],
)
def test_a_folder_that_is_named_as_those_of_instances(folder: str, is_one: bool) -> None:  # noqa: FBT001 - a column
    """So that no folder of an instance, which may hold hundreds of segments, is looked into."""
    assert is_instance_folder(folder) == is_one
