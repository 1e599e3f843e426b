"""Tests of the label ``schema``: batches are split by the schema that wrote their messages."""

from __future__ import annotations

from pathlib import Path

import fastavro
import numpy as np
import pytest

from hopwatch import Probe
from hopwatch.probes import recorder
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.files.importer import ImportPlan
from hopwatch.probes.recorder import Stamp, StampArrays, StampKind
from hopwatch.probes.schema_registry import RegistryDownError
from hopwatch.probes.stamp_arguments import label_schema
from hopwatch.probes.taps.avro import WriterSchema
from hopwatch.probes.taps.documents import StampableMessage
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.fake_registry import FakeRegistry
from tests.support.made_files import MAPPING, as_avro, as_jsonl, import_files, made_rows
from tests.support.probe_host import spooled
from tests.support.sender_bench import Bench
from tests.support.tap_bench import Place


def one(number: int, schema: str, side: StampKind = StampKind.ARRIVED) -> Stamp:
    """Return a stamp of a message of a schema."""
    return Stamp(side, number, EPOCH_US, EPOCH_US * 1_000, labels=label_schema(schema))


def sent(bench: Bench) -> dict[str, list[int]]:
    """Send all stamps, and return the messages of each schema."""
    bench.sender.flush()
    found: dict[str, list[int]] = {}
    for batch in bench.batches():
        own = [int.from_bytes(batch.message_ids[at : at + 16]) for at in range(0, len(batch.message_ids), 16)]
        if own:
            found.setdefault(batch.labels.get("schema", ""), []).extend(own)
    return found


def test_stamps_of_each_schema_are_batches_of_their_own() -> None:
    """Single stamps and arrays alike; what has no schema has no such label, and other labels stay."""
    bench = Bench(labels={"host": "a"})
    bench.sender.queue.extend((one(1, "orders/1"), one(2, "orders/2"), one(3, ""), one(4, "orders/1")))
    pairs = np.frombuffer(b"".join(map(id_bytes, (5, 6))), np.uint64).reshape(-1, 2)
    times = np.full(2, EPOCH_US)
    stamps = StampArrays(StampKind.ARRIVED, pairs, times, 0, labels=label_schema("orders/2"))
    assert bench.sender.append_many(stamps, 10)
    assert sent(bench) == {"": [3], "orders/1": [1, 4], "orders/2": [5, 6, 2]}
    assert {batch.labels["host"] for batch in bench.batches()} == {"a"}


def test_both_stamps_of_a_message_stay_one_observation() -> None:
    """Of the schema that its arrival names."""
    bench = Bench()
    bench.sender.queue.extend((one(1, "orders/1"), one(1, "orders/1", StampKind.DEPARTED)))
    assert sent(bench) == {"orders/1": [1]}


def test_no_more_schemas_than_the_bound_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of its own for each message makes no batch for each."""
    monkeypatch.setattr(recorder, "MAX_LABEL_SETS", 2)
    bench = Bench()
    bench.sender.queue.extend(one(number, f"s{number}") for number in range(9))
    assert sent(bench) == {"": [2, 3, 4, 5, 6, 7, 8], "s0": [0], "s1": [1]}


@pytest.mark.parametrize(("name", "label"), [("x" * 99, "x" * 64), ("\ud800\0", "?\0")])
def test_a_name_is_cut_to_what_the_wire_takes(name: str, label: str) -> None:
    """Half a surrogate pair too."""
    bench = Bench()
    bench.sender.queue.append(one(1, name))
    assert sent(bench) == {label: [1]}


def test_a_probe_of_eight_labels_has_no_room_for_a_schema() -> None:
    """Its own labels stay; one that says the schema itself is overruled by its messages."""
    full = {f"label{number}": "x" for number in range(7)}
    for labels, expected in ((full | {"host": "a"}, {""}), (full | {"schema": "mine"}, {"orders/1"})):
        bench = Bench(labels=labels)
        bench.sender.queue.append(one(1, "orders/1"))
        assert set(sent(bench)) == expected


def test_arrays_name_their_schema() -> None:
    """As a service gives it."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived_many([1, 2], [EPOCH_US] * 2, schema="orders/7")
        probe.departed_many([3], [EPOCH_US], schema="orders/8")
    batches = [batch for batch in map(decode, sink.records) if batch.count]
    assert [(batch.labels, batch.count) for batch in batches] == [
        ({"schema": "orders/7"}, 2),
        ({"schema": "orders/8"}, 1),
    ]


def test_a_tap_sends_each_schema_apart() -> None:
    """And counts all of them alike."""
    place = Place()
    schemas = ("orders/1", "orders/2", "", "orders/1")
    place.stamping.stamp_messages(
        StampableMessage(id_bytes(number), EPOCH_US, schema=schema) for number, schema in enumerate(schemas)
    )
    assert place.stamping.settle()
    batches = [batch for batch in map(decode, place.sink.records) if batch.count]
    assert sorted((batch.labels.get("schema", ""), batch.count) for batch in batches) == [
        ("", 1), ("orders/1", 2), ("orders/2", 1),
    ]  # fmt: skip
    assert place.stamping.tally.stamped == 4


def test_the_rows_of_an_avro_file_name_the_schema_in_its_header(tmp_path: Path) -> None:
    """By the first digits of its fingerprint; hello, drops and bye say nothing of it, nor does another format."""
    made = made_rows(0, 30)
    for name, data in (("avro", as_avro(made)), ("jsonl", as_jsonl(made))):
        (tmp_path / name).write_bytes(data)
        import_files(tmp_path / f"spool-{name}", ImportPlan("flights", "file", MAPPING, bye=True), tmp_path / name)
    ((*in_avro,),) = spooled(tmp_path / "spool-avro").values()
    ((*in_json,),) = spooled(tmp_path / "spool-jsonl").values()
    with (tmp_path / "avro").open("rb") as file:
        expected = WriterSchema(fastavro.reader(file).writer_schema).label
    assert {batch.labels.get("schema") for batch in in_avro if batch.count} == {expected}
    assert len(expected) == 12
    assert {batch.labels.get("schema") for batch in (*in_json, *(one for one in in_avro if not one.count))} == {None}


PLACES = "/schemas/ids/7/versions"


def test_a_registry_names_a_schema_by_subject_and_version() -> None:
    """The first by name, by its number or its fingerprint; of a long name the version stays."""
    registry = FakeRegistry({PLACES: [{"subject": "b", "version": 1}, {"subject": "a", "version": 12}, "odd"]})
    registry.answers["/schemas/" + "ab" * 32] = {"id": 7, "schema": "string"}
    assert registry.find_name(7) == registry.find_name(b"\xab" * 32) == "a/12"
    registry.answers[PLACES] = [{"subject": "x" * 99, "version": 12}]
    assert registry.find_name(7) == "x" * 61 + "/12"


@pytest.mark.parametrize("answer", [[], {}, "x", (404, {}), [{"subject": 5, "version": 1}], [{"version": True}]])
def test_a_registry_that_knows_no_name_gives_none(answer: object) -> None:
    """Any other answer is none; a registry that does not answer is waited for."""
    registry = FakeRegistry({PLACES: answer})
    assert (registry.find_name(7), registry.find_name(bytes(32))) == ("", "")
    registry.answers[PLACES] = OSError("away")
    with pytest.raises(RegistryDownError, match="does not answer: away"):
        registry.find_name(7)
