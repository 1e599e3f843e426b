"""Tests of what is set aside: a loss that it may explain is not called sure, through spool, ledger and store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import reader
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.limits import WINDOW_MS
from hopwatch.probes.contract.segment import MAGIC, encode_frame, folder_name
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store
from tests.support.spool import (
    START_MS,
    at_us,
    make_batch,
    observation_batch,
    pack_ids,
    write_file,
    write_segment,
)
from tests.support.spool_traffic import pulse

TERMS = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
RULES = {"orders": StreamConfig(Pathway.parse("a -> b"), TERMS, ignore_nodes=("audit", "trail.log"))}
FIRST, SECOND = range(50), range(50, 100)
LATE_S = 400
EMPTY: dict[str, Any] = {
    "kind": BatchKind.HEARTBEAT,
    "count": 0,
    "message_ids": b"",
    "lag_in_us": b"",
    "lag_out_us": b"",
    "outcome": b"",
    "drops": (),
    "window_start_ms": START_MS,
}


class Place:
    """A spool of two nodes, of which b has two replicas; each has seen half of the messages."""

    def __init__(self, folder: Path) -> None:
        """Write what a and the first replica of b tell."""
        self.folder, self.spool = folder, folder / "spool"
        self.write(observation_batch([*FIRST, *SECOND], "a", sent_at_us=at_us(60)))
        self.write(self.of_b(FIRST, "b-1"))

    @staticmethod
    def of_b(numbers: range, probe: str, **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
        """Return what a replica of b tells of messages."""
        return observation_batch(numbers, fields.pop("node", "b"), probe=probe, **fields)

    def write(self, batch: Batch, *, goes_on: bool = True) -> Path:
        """Write the segment of an instance, which then goes on, or says no more."""
        path = self.path(batch)
        if goes_on:
            last = replace(
                batch, **EMPTY, seq=batch.seq + 1, complete_through_us=at_us(LATE_S), sent_at_us=at_us(LATE_S)
            )
            write_segment(path.with_name("0000000001.seg"), last, arrival_us=at_us(LATE_S))
        return write_segment(path, batch, arrival_us=at_us(70))

    def path(self, batch: Batch) -> Path:
        """Return where the first segment of an instance stands."""
        name = f"{batch.stream}.{batch.node}.{batch.probe}.{batch.epoch_us}"
        return self.spool / folder_name(name) / "0000000000.seg"

    def window(self, *, restarts: bool = False) -> dict[str, Any]:
        """Return the first window as a stream judges it, restarted or not after all was read."""
        for folder in self.spool.iterdir():
            os.utime(folder, ns=(at_us(70) * 1_000, at_us(70) * 1_000))
        store = prepared_store(self.folder, f"{len(list(self.folder.iterdir()))}.db")
        batches = MicroBatches(RULES, store, spool_dir=self.spool)
        batches.run(sorted(self.spool.rglob("*.seg")))
        for number in range(2):
            if restarts:
                batches.restart()
            batches.run([pulse(at_us(LATE_S + number), f"pulse-{number}").write(self.folder / "pulse")])
        (stream,) = reader.read_report(store)["streams"]
        return dict(next(one for one in stream["windows"] if one["known"]))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place where the second replica of b has told nothing yet."""
    return Place(tmp_path)


def bounds(window: dict[str, Any]) -> tuple[str, int, int | None]:
    """Return the verdict and what is lost at b, at least and at most."""
    node = window["nodes"][1]
    return str(window["verdict"]), node["loss_lower"], node["loss_upper"]


def test_without_a_trace_of_a_second_replica_its_messages_are_lost(place: Place) -> None:
    """So that all below can fail; and they are all there once it has told."""
    assert bounds(place.window()) == ("LOSSY", 50, 50)
    place.write(place.of_b(SECOND, "b-2"))
    assert bounds(place.window()) == ("CLEAN", 0, 0)


def _emptied(place: Place) -> None:
    write_file(place.path(place.of_b(SECOND, "b-2")), b"", at_us(70))


def _cut(place: Place) -> None:
    path = place.write(place.of_b(SECOND, "b-2"), goes_on=False)
    write_file(path, path.read_bytes()[:40], at_us(70))


def _flipped(place: Place) -> None:
    path = place.write(place.of_b(SECOND, "b-2"), goes_on=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    write_file(path, bytes(data), at_us(70))


def _newer(place: Place) -> None:
    record = envelope.encode(place.of_b(SECOND, "b-2"))
    write_segment(place.path(place.of_b(SECOND, "b-2")), record[:1] + bytes(32) + record[33:], arrival_us=at_us(70))


def _folder_alone(place: Place) -> None:
    place.path(place.of_b(SECOND, "b-2")).parent.mkdir(parents=True)


def _not_published(place: Place) -> None:
    write_file(place.path(place.of_b(SECOND, "b-2")).with_suffix(".open"), MAGIC, at_us(70))


def _hello_alone(place: Place) -> None:
    hello = replace(
        make_batch(BatchKind.HEARTBEAT, "b"), probe="b-2", complete_through_us=at_us(-10), sent_at_us=at_us(-10)
    )
    write_segment(place.path(hello), hello, arrival_us=at_us(-10))


def _last_one_cut(place: Place) -> None:
    hello = replace(
        make_batch(BatchKind.HEARTBEAT, "b"), probe="b-2", epoch_us=at_us(-800), complete_through_us=at_us(-700)
    )
    later = replace(place.of_b(SECOND, "b-2"), seq=1, epoch_us=at_us(-800))
    path = write_segment(place.path(hello), hello, arrival_us=at_us(-700))
    data = write_segment(path.with_name("0000000001.seg"), later, arrival_us=at_us(70))
    write_file(data, data.read_bytes()[:-7], at_us(70))


HOLES = (_emptied, _cut, _flipped, _newer, _folder_alone, _not_published, _hello_alone, _last_one_cut)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("hide", HOLES)
def test_who_was_there_and_told_nothing_makes_no_loss(hide: Any, restarts: bool, place: Place) -> None:  # noqa: ANN401, FBT001 - a function of the table, and a column
    """Its folder tells of it, and its segments, however damaged; a monitor that is started again knows that still."""
    hide(place)
    window = place.window(restarts=restarts)
    assert bounds(window) == ("UNKNOWN", 0, None)
    assert window["reasons"] != []


def by_count() -> Iterator[Any]:
    """Yield what is missing by count, and what the window says of it."""
    far = {"window_start_ms": 0, "lag_in_us": b"", "lag_out_us": b"", "outcome": b"\x01" * 50}
    stamps = {"lag_in_us": (at_us(30)).to_bytes(8, "little") * 50, "lag_out_us": b"", "window_start_ms": 0}
    yield pytest.param({"node": "nrom"}, "probes report nodes that the path does not have: nrom", id="undeclared")
    yield pytest.param(stamps, "b: 50 observations have event times that cannot be", id="implausible")
    yield pytest.param(far, "b: 50 observations have event times that cannot be", id="implausible, without stamps")
    other = pack_ids(*range(1_050, 1_100))
    said_of_them = "b: none of the 50 messages of the probe b-2 was seen before b: do the nodes use one type of id?"
    yield pytest.param({"message_ids": other}, said_of_them, id="ids of another type")
    drops = (Drop(START_MS, 50, "queue full"),)
    yield pytest.param(
        {"drops": drops, "message_ids": pack_ids(*FIRST)}, "b: its probes dropped 50 observations", id="drops"
    )


@pytest.mark.parametrize(("fields", "reason"), list(by_count()))
def test_what_is_missing_by_count_explains_so_many_losses(fields: dict[str, Any], reason: str, place: Place) -> None:
    """Fifty of fifty are unsure, and the reason says why; of fifty-one one is sure."""
    place.write(place.of_b(SECOND, "b-2", **fields))
    window = place.window()
    assert bounds(window)[:2] == ("UNKNOWN", 0)
    assert any(said.startswith(reason) for said in window["reasons"])
    more = observation_batch([0, 1_000], "a", probe="a-2", epoch_us=at_us(-9))
    place.write(more)
    assert bounds(place.window())[:2] == ("LOSSY", 1)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fields", [{"node": "audit"}, {"node": "trail.log"}, {"stream": "orders.dlq"}])
def test_what_is_known_and_not_meant_explains_nothing(fields: dict[str, str], restarts: bool, place: Place) -> None:  # noqa: FBT001 - a column
    """An ignored node, a stream of another monitor: neither its records nor its folder, whatever else it may say."""
    place.write(place.of_b(SECOND, "b-2", **fields), goes_on=False)
    assert bounds(place.window(restarts=restarts)) == ("LOSSY", 50, 50)


def test_an_undeclared_node_that_did_not_tell_all_may_have_had_any_number(place: Place) -> None:
    """An undeclared node that did not report everything may have had any number of messages."""
    place.write(place.of_b(range(50, 60), "b-2", node="nrom"), goes_on=False)
    assert bounds(place.window()) == ("UNKNOWN", 0, 50)


def test_implausible_observations_of_another_time_explain_nothing(place: Place) -> None:
    """Implausible observations stamped long before the window explain none of its loss."""
    stamps = {"lag_in_us": (at_us(-3_600)).to_bytes(8, "little") * 50, "lag_out_us": b"", "window_start_ms": 0}
    batch = place.of_b(SECOND, "b-2", epoch_us=at_us(-4_000), complete_through_us=at_us(-3_500), **stamps)
    bye = replace(
        make_batch(BatchKind.BYE, "b"), probe="b-2", epoch_us=at_us(-4_000), seq=1, complete_through_us=at_us(-3_400)
    )
    write_segment(place.path(batch), batch, bye, arrival_us=at_us(-3_400))
    window = place.window()
    assert (window["verdict"], window["nodes"][1]["loss_lower"]) == ("LOSSY", 50)


def test_a_copy_of_what_an_undeclared_node_sent_counts_once(place: Place) -> None:
    """Its batches have numbers, too."""
    batch = place.of_b(range(50, 75), "b-2", node="nrom")
    place.write(batch)
    write_segment(place.spool / "copies" / "0000000000.seg", batch, batch, arrival_us=at_us(80))
    assert bounds(place.window())[:2] == ("LOSSY", 25)


def test_the_next_window_is_not_touched(place: Place) -> None:
    """Observations of an undeclared node in one window explain no loss of another."""
    place.write(place.of_b(SECOND, "b-2", node="nrom", window_start_ms=START_MS + WINDOW_MS))
    assert bounds(place.window())[:2] == ("LOSSY", 50)


def test_absurd_counts_of_many_instances_make_no_loss(place: Place) -> None:
    """Together they are more than 64 bits hold, and still only a great many."""
    one = make_batch(BatchKind.HEARTBEAT, "b", complete_through_us=at_us(LATE_S), drops=(Drop(START_MS, 2**62, "odd"),))
    many = [replace(one, probe=f"odd-{number}") for number in range(1_100)]
    write_segment(place.spool / "passed-on" / "0000000000.seg", *many, arrival_us=at_us(LATE_S))
    verdict, lower, upper = bounds(place.window())
    assert (verdict, lower) == ("UNKNOWN", 0)
    assert upper is not None
    assert upper > 50


@pytest.mark.parametrize("restarts", [False, True])
def test_a_hole_from_before_the_first_window_is_kept(restarts: bool, place: Place) -> None:  # noqa: FBT001 - a column
    """A record that may have been anybody's came when nothing else had; a monitor that is started again knows of it."""
    loose = write_file(place.folder / "loose" / "0000000000.seg", MAGIC + encode_frame(b"damaged"), at_us(70))
    batches = MicroBatches(RULES, prepared_store(place.folder, "store.db"))
    batches.run([loose])
    if restarts:
        batches.restart()
    batches.run(sorted(place.spool.rglob("*.seg")))
    for number in range(2):
        batches.run([pulse(at_us(LATE_S + number), f"pulse-{number}").write(place.folder / "pulse")])
    (stream,) = reader.read_report(batches.engine)["streams"]
    assert bounds(next(one for one in stream["windows"] if one["known"])) == ("UNKNOWN", 0, None)


def test_a_reason_names_the_undeclared_nodes_of_its_window(place: Place) -> None:
    """Not one that sent something hours before, and said bye then."""
    place.write(place.of_b(SECOND, "b-2", node="nrom"))
    old = replace(make_batch(BatchKind.BYE, "aaa"), epoch_us=at_us(-7_300), complete_through_us=at_us(-7_200))
    write_segment(place.path(old), old, arrival_us=at_us(-7_200))
    (reason,) = place.window()["reasons"]
    assert reason.startswith("probes report nodes that the path does not have: nrom; ")
