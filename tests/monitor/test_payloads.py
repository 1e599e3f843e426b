"""Tests of parcels that become one."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import BatchFact, DropFact, PacketFact
from hopwatch.monitor.kernel.tally import NEVER_US, build_tally, empty_tally, merge_tallies
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import (
    CLAIMS,
    NOWHERE,
    SET_ASIDE_REASONS,
    Claims,
    FactSheet,
    SendingInstance,
    join_payloads,
    pack_sheets,
    pack_tally,
    split_payloads,
    unpack_sheets,
    unpack_tally,
)
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import hash_text, id_bytes
from hopwatch.probes.contract.lag_histograms import count_lags
from tests.repository import ROOT
from tests.support.batch_arrays import passed_batch


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=4))
def test_joined_parcels_come_apart_as_they_were(triggers: list[list[bytes]]) -> None:
    """Joined payloads are split into the same parcels, empty ones included."""
    joined = b""
    for parcels in triggers:
        joined += join_payloads(parcels)
    assert list(split_payloads(joined)) == [parcel for parcels in triggers for parcel in parcels]


def test_every_reason_to_set_a_record_aside_is_named() -> None:
    """Those that records are refused with anywhere, and no others."""
    sources = [*(ROOT / "monitor" / "spark").glob("*.py"), *(ROOT / "probes" / "contract").glob("*.py")]
    sources += [ROOT / "monitor" / "accounting" / "undeclared_names.py", ROOT / "monitor" / "segment_file.py"]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    named = re.findall(r'RecordError\(\s*"(\w+)"|Frame\([^"\n]*"(\w+)"', text)
    named += re.findall(r'^()(?:IGNORED|UNKNOWN|UNREADABLE)_\w+: Final = "(\w+)"', text, re.MULTILINE)
    either = re.findall(r'reason = "(\w+)" if .* else "(\w+)"', text)
    assert {one for pair in named + either for one in pair if one} == set(SET_ASIDE_REASONS)


def test_claims_of_a_checkpoint_from_before_ids_had_kinds_are_taken() -> None:
    """The monitor was upgraded while windows were open: their claims point where they did, and no kind is known."""
    old = np.dtype(
        [
            *((name, "<i8") for name in ("seq", "arrival_us", "start", "end")),
            ("count", "<i4"),
            *((name, "<i8") for name in ("message_ids", "lag_in_us", "lag_out_us", "outcome")),
        ]
    )
    head = b'{"path":"s.seg","node":"a","instance":"i","observations":2}'
    refs = np.array([(3, 70, 6, 99, 2, 40, 72, 0, 88)], old)
    claims = Claims.unpack(struct.pack("<I", len(head)) + head + refs.tobytes())
    (found,) = claims.refs.tolist()
    assert found == (3, 70, 6, 99, 2, 40, 72, 0, 88, WireIdKind.UNKNOWN, *[NOWHERE] * 4, 0)
    assert claims.senders == (("a", "i"),)
    again = Claims.unpack(claims.pack())
    assert (again.path, again.senders, again.refs.tolist()) == ("s.seg", claims.senders, [found])


def test_packets_of_a_checkpoint_from_before_lags_were_read_are_taken() -> None:
    """Their lags are unknown; those of others are as they were told."""
    old, new = PacketFact(0, 60_000, 1, 7, -1, 2, 30), PacketFact(0, 60_000, 1, 7, -1, 2, 30, count_lags(np.arange(7)))
    sheet = FactSheet("s.seg", "s", "n", "p", 0, {}, (BatchFact(*[0] * 9),), (), (old, new))
    assert list(unpack_sheets(pack_sheets("s.seg", [sheet]))) == [sheet]
    header, body = _part(pack_sheets("s.seg", [sheet]))
    *_, packets = header["sheets"][0]
    packets[:] = [packet[:-1] for packet in packets]
    assert [one.packets for one in unpack_sheets(_join(header, body))] == [(old, old)]


def test_partitions_of_a_sheet_are_taken_and_those_without_have_none() -> None:
    """So a parcel is as it was where no batch has a partition."""
    sheet = FactSheet("s.seg", "s", "n", "p", 7, {}, (BatchFact(*range(9)),), ())
    labelled = replace(sheet, partitions={"3": (1, 2**62), "é": (5, 5)})
    parcel = pack_sheets("s.seg", [sheet, labelled, sheet])
    assert list(unpack_sheets(parcel)) == [sheet, labelled, sheet]
    assert [len(told) for told in _part(parcel)[0]["sheets"]] == [8, 9, 8]


def test_fact_sheets_of_a_checkpoint_that_come_one_by_one_are_taken() -> None:
    """Each parcel had that of one instance; those from before there were packets have none."""
    drops, packets = (DropFact(0, 60_000, 3, "queue full"),), (PacketFact(0, 60_000, 1, 7, -1, 2, 30),)
    sheet = FactSheet("s.seg", "s", "n", "p", 7, {"host": "a"}, (BatchFact(*range(9)),), drops, packets)
    header, body = _part(pack_sheets("s.seg", [sheet]))
    *sender, labels, _, told_drops, told_packets = header["sheets"][0]
    old = {"path": "s.seg", "labels": labels, "drops": told_drops} | dict(
        zip(SendingInstance._fields, sender, strict=True)
    )
    assert list(unpack_sheets(_join(old | {"packets": told_packets}, body))) == [sheet]
    assert list(unpack_sheets(_join(old, body))) == [replace(sheet, packets=())]


def _part(parcel: bytes) -> tuple[dict[str, Any], bytes]:
    """Return header and body of a parcel."""
    (length,) = struct.unpack_from("<I", parcel)
    return json.loads(parcel[4 : 4 + length]), parcel[4 + length :]


def _join(header: dict[str, Any], body: bytes) -> bytes:
    head = json.dumps(header).encode()
    return struct.pack("<I", len(head)) + head + body


def test_claims_of_a_checkpoint_from_before_labels_were_counted_are_taken() -> None:
    """Their kinds and texts are known, and nothing of labels."""
    names = ("seq", "arrival_us", "start", "end")
    old = np.dtype(
        [
            *((name, "<i8") for name in names),
            ("count", "<i4"),
            *((name, "<i8") for name in ("message_ids", "lag_in_us", "lag_out_us", "outcome")),
            *(("id_kind", "u1"), ("id_text_ends", "<i8"), ("id_texts", "<i8")),
        ]
    )
    head = b'{"path":"s.seg","node":"a","instance":"i","observations":2,"named":true}'
    refs = np.array([(3, 70, 6, 99, 2, 40, 72, 0, 88, WireIdKind.INT, 50, 60)], old)
    claims = Claims.unpack(struct.pack("<I", len(head)) + head + refs.tobytes())
    assert claims.refs.tolist() == [(3, 70, 6, 99, 2, 40, 72, 0, 88, WireIdKind.INT, 50, 60, NOWHERE, NOWHERE, 0)]
    assert Claims.unpack(claims.pack()).refs.tolist() == claims.refs.tolist()


def test_claims_of_a_checkpoint_from_before_instances_shared_a_parcel_are_taken() -> None:
    """All of a parcel are of its one instance."""
    assert CLAIMS.names is not None
    old = np.dtype([(name, CLAIMS[name]) for name in CLAIMS.names if name != "sender"])
    head = b'{"path":"s.seg","node":"a","instance":"i","observations":2,"labelled":true}'
    refs = np.array([(3, 70, 6, 99, 2, 40, 72, 0, 88, WireIdKind.INT, 50, 60, 7, 8)] * 2, old)
    claims = Claims.unpack(struct.pack("<I", len(head)) + head + refs.tobytes())
    assert claims.senders == (("a", "i"),)
    assert claims.refs.tolist() == [(*ref, 0) for ref in refs.tolist()]


def test_a_tally_of_a_store_from_before_ids_had_names_is_read() -> None:
    """Its lost ids are there, and nothing is known of them but their bytes."""
    tally = build_tally(Pathway.parse("a -> b"), [passed_batch(0, [id_bytes(number) for number in (1, 2)])], 60)
    packed = pack_tally(replace(tally, slowest=None, stamp_sample=None))
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    ways = sum(header.pop("journeys"))
    kinds_and_ends = sum(5 * count for count in header["lost_ids"]) + ways
    del header["texts"]
    head = json.dumps(header, separators=(",", ":")).encode()
    old = struct.pack("<I", len(head)) + head + packed[4 + length : len(packed) - kinds_and_ends]
    found = unpack_tally(old)
    lost = found.lost(1, NEVER_US)
    assert lost.message_ids.tobytes() == id_bytes(1) + id_bytes(2)
    assert lost.names.kinds.tolist() == [WireIdKind.UNKNOWN] * 2
    assert lost.journeys.read_stamps(1) == (0, [])
    assert pack_tally(found) == packed


def test_last_sightings_are_packed_with_what_is_missing() -> None:
    """Those of each id of a loss come back; of a tally of before, which kept none, nobody knows any."""
    pathway, seen = Pathway.parse("a -> b"), [passed_batch(0, [id_bytes(number) for number in (1, 2)])]
    tally = build_tally(pathway, seen, 60, keeps_last=True)
    assert tally.missing is not None
    last_us = tally.missing.last_us.tolist() * 2
    assert [one.last_us.tolist() for one in unpack_tally(pack_tally(tally)).lost_ids] == [[], last_us]
    packed = pack_tally(replace(tally, stamp_sample=None, seconds=None))
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    del header["last_sightings"]
    head = json.dumps(header, separators=(",", ":")).encode()
    old = unpack_tally(struct.pack("<I", len(head)) + head + packed[4 + length : len(packed) - 8 * len(last_us)])
    assert old.missing is not None
    assert old.missing.last_us.tolist() == tally.missing.last_us.tolist()
    assert old.lost_ids[1].last_us.tolist() == [NEVER_US, NEVER_US]


def test_slowest_messages_are_packed_with_their_names() -> None:
    """Ids, lags and names come back as they were; of a node without departures, none."""
    text = "ünïcode\0".encode()
    said = passed_batch(0, [hash_text(text), id_bytes(2)])._replace(
        id_kind=WireIdKind.TEXT,
        id_texts=np.frombuffer(text, np.uint8),
        id_text_ends=np.array([len(text)] * 2, np.uint32),
    )
    found = unpack_tally(pack_tally(build_tally(Pathway.parse("a -> b"), [said], 60))).slowest
    assert found is not None
    at_a, at_b = found
    assert {one.tobytes() for one in at_a.message_ids} == {hash_text(text), id_bytes(2)}
    assert (at_a.lag_us.tolist(), set(at_a.names.texts), at_a.names.kinds.tolist()) == ([30, 30], {text, None}, [3, 3])
    assert (len(at_b.message_ids), len(at_b.lag_us), len(at_b.names.kinds)) == (0, 0, 0)


def test_a_tally_of_a_store_from_before_slowest_messages_were_kept_is_read() -> None:
    """None were kept, which is not the same as that there are none; a shard without them leaves the whole without."""
    pathway = Pathway.parse("a -> b")
    tally = build_tally(pathway, [passed_batch(0, [id_bytes(1)])], 60)
    old = unpack_tally(pack_tally(replace(tally, slowest=None)))
    assert (old.slowest, old.observations) == (None, 1)
    assert merge_tallies([tally, old]).slowest is None
    assert merge_tallies([tally, empty_tally(pathway)]).slowest is not None
