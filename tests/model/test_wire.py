"""The slow reader and writer hold to the wire's page: every limit, every way in which a file can be broken."""

import io
import json
import struct
from pathlib import Path

import fastavro
import pytest

from tests.model import bad_records
from tests.model.probe_instances import Stamped, pack
from tests.model.random_choices import Dials, Dice
from tests.model.record import (
    FILTERED,
    FINGERPRINT,
    HEAD,
    PASSED,
    SCHEMA,
    SCHEMA_TEXT,
    Body,
    RecordError,
    decode,
    encode,
)
from tests.model.spool_writer import TEN_S, SpoolWriter, passed
from tests.model.wire import MAGIC, frame, read_spool, write_segment

WINDOW_US = TEN_S * 1_000_000


def good_body() -> Body:
    """Give a body that uses every field."""
    dice = Dice(Dials(seed=1))
    stamped = [
        Stamped(WINDOW_US + 5, b"a" * 16, WINDOW_US + 1, WINDOW_US + 3, WINDOW_US + 5, PASSED),
        Stamped(WINDOW_US + 7, b"b" * 16, WINDOW_US + 2, WINDOW_US + 7, None, FILTERED, "test traffic"),
    ]
    names = {"probe": "host-1", "stream": "orders", "node": "router", "kind": "OBSERVATIONS", "labels": {"host": "h"}}
    moments = {"epoch_us": 1, "window_start_ms": WINDOW_US // 1000, "sent_at_us": 3, "complete_through_us": 4}
    drops = [{"window_start_ms": 60_000, "count": 2, "cause": "queue full"}]
    return {**names, **moments, "seq": 7, "drops": drops, **pack(dice, stamped, WINDOW_US, 0)}


def test_the_schema_has_the_fingerprint_of_the_page() -> None:
    """The schema's canonical form hashes to the fingerprint that the page names."""
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(SCHEMA_TEXT))
    assert fastavro.schema.fingerprint(canonical, "SHA-256") == FINGERPRINT.hex()


def test_a_body_reads_as_it_was_written() -> None:
    """Every field that the model uses comes back, and a stamp that was not made is None."""
    batch = decode(encode(good_body()))
    assert (batch.stream, batch.node, batch.probe, batch.seq) == ("orders", "router", "host-1", 7)
    assert batch.drops == ((60_000, 2),)
    first, second = batch.observations
    assert (first.message_id, first.lag_in_us, first.lag_out_us, first.outcome) == (b"a" * 16, 2, 4, PASSED)
    assert (second.message_id, second.lag_in_us, second.lag_out_us, second.outcome) == (b"b" * 16, 5, None, FILTERED)


def test_unusual_blocks_read_the_same() -> None:
    """Avro's other block encodings of arrays and maps say the same."""
    body = good_body() | {"reasons": ["test traffic", "x", "y"]}
    for seed in range(10):
        record = bad_records.in_blocks(Dice(Dials(seed)), body)
        assert decode(record) == decode(encode(body))
    assert len({bad_records.in_blocks(Dice(Dials(seed)), body) for seed in range(10)}) > 1


def test_what_is_at_its_limit_is_read() -> None:
    """The largest lawful record is no bad_records."""
    widest = {
        "probe": "\u2603" * 128,
        "reasons": ["\u2603" * 64] * 32,
        "labels": {f"{at}{'k' * 63}": "\u2603" * 64 for at in range(8)},
        "drops": [{"window_start_ms": 0, "count": 2**62, "cause": "c" * 64}] * 1024,
        "event_offset_us": struct.pack("<2I", 0, 59_999_999),
        "epoch_us": -(2**63),
        "complete_through_us": 2**63 - 1,
    }
    assert len(decode(encode(good_body() | widest)).observations) == 2


@pytest.mark.parametrize(
    "name", [name for name, (reason, _) in bad_records.BODIES.items() if not reason.startswith("unknown")]
)
def test_a_body_that_breaks_a_rule_is_refused(name: str) -> None:
    """Each broken body is refused with its reason, and the text says which rule and whose record."""
    with pytest.raises(RecordError, match="breaks that") as caught:
        decode(bad_records.broken_body(good_body(), name))
    assert caught.value.reason == bad_records.BODIES[name][0]


@pytest.mark.parametrize(("name", "text"), [
    ("nothing", "starts with 0x81, this one with nothing"),
    ("another magic", "starts with 0x81, this one with c3"),
    ("unknown fingerprint", "no schema is known with the fingerprint"),
    ("cut in the body", "does not read as ObservationBatch: "),
    ("a byte too many", "1 bytes are left behind the body"),
])  # fmt: skip
def test_a_refused_record_says_what_was_got(name: str, text: str) -> None:
    """The text names what was found."""
    with pytest.raises(RecordError, match=text):
        decode(bad_records.RECORDS[name][1](Dice(Dials(seed=2)), encode(good_body())))


@pytest.mark.parametrize("name", bad_records.RECORDS)
def test_a_record_that_does_not_read_is_refused(name: str) -> None:
    """Each broken record is refused with its reason, wherever it is cut."""
    for seed in range(20):
        with pytest.raises(RecordError) as caught:
            decode(bad_records.RECORDS[name][1](Dice(Dials(seed)), encode(good_body())))
        assert caught.value.reason == bad_records.RECORDS[name][0]


def test_the_records_around_a_broken_one_are_read(tmp_path: Path) -> None:
    """A bad checksum and an oversized record are skipped, a torn tail ends the file, and each says where it stood."""
    good, dice = frame(encode(good_body())), Dice(Dials(seed=3))
    parts = [
        good,
        bad_records.bad_crc(dice, good),
        good,
        bad_records.oversized(dice),
        good,
        bad_records.torn_tail(dice, good),
    ]
    write_segment(tmp_path / "i" / "0000000000.seg", MAGIC + b"".join(parts), 1_000_000, rest_ns=999)
    spool = read_spool(tmp_path)
    starts = [len(MAGIC) + sum(map(len, parts[:at])) for at in range(len(parts))]
    assert [one.place for one in spool.received] == [("i/0000000000.seg", starts[at]) for at in (0, 2, 4)]
    assert [(one.reason, one.place[1]) for one in spool.set_aside] == [
        ("bad_crc", starts[1]), ("oversized", starts[3]), ("torn_tail", starts[5]),
    ]  # fmt: skip
    assert {one.arrival_us for one in spool.received} == {1_000_000}


@pytest.mark.parametrize("length", [1, 7, 8, 40])
def test_a_tail_is_torn_wherever_it_is_cut(tmp_path: Path, length: int) -> None:
    """Part of a header, a header alone and part of a record are one torn tail each."""
    write_segment(tmp_path / "i" / "0.seg", MAGIC + frame(encode(good_body()))[:length], 0)
    assert [one.reason for one in read_spool(tmp_path).set_aside] == ["torn_tail"]


@pytest.mark.parametrize("data", [b"", b"HWSP1", b"HWSP2\n", b"timestamp,value\n"])
def test_a_file_without_the_magic_is_refused_whole(tmp_path: Path, data: bytes) -> None:
    """A file without the magic is set aside as one record, whatever it holds."""
    write_segment(tmp_path / "i" / "0.seg", data, 0)
    assert [one.reason for one in read_spool(tmp_path).set_aside] == ["foreign_file"]


def test_only_whole_segments_are_read(tmp_path: Path) -> None:
    """A file that is still open, and one of another kind, hold nothing."""
    for name in ("0000000000.open", "notes.txt"):
        write_segment(tmp_path / "i" / name, MAGIC + frame(encode(good_body())), 0)
    write_segment(tmp_path / "i" / "0000000001.seg", MAGIC, 0)
    found = read_spool(tmp_path)
    assert (found.received, found.set_aside, [name for name, _ in found.folders]) == ((), (), ["i"])


def test_an_unknown_stream_and_an_unknown_node_are_set_aside(tmp_path: Path) -> None:
    """Records of unknown streams and nodes are set aside under their reasons; the monitor's own pulse is known."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b"})
    hand.say("a", 0, 10, passed(1), other={"stream": "nobody"})
    hand.say("c", 0, 10, passed(1))
    hand.say("monitor", 0, 10, other={"stream": "_hopwatch"})
    accounts = hand.report()["accounts"]
    assert accounts["set_aside"] == {"unknown_stream": 1, "unknown_node": 1}
    assert (accounts["records"], accounts["batches"], accounts["observations"]) == (3, 1, 0)


def test_a_body_is_written_by_its_schema() -> None:
    """A record is the head and what fastavro writes, so that another program may write it too."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, good_body())
    assert encode(good_body()) == HEAD + out.getvalue()
