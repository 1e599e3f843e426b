"""Journey of a message: its stamps in the segments of the spool."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.lookup import segment_records
from hopwatch.monitor.texts.loss_bounds import LossPart
from hopwatch.probes.contract import envelope, id_texts
from hopwatch.probes.contract.batch import Outcome, WireIdKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import ID_BYTES, NO_REASON, NOT_STAMPED

_DTYPES: Final = ("<u4", "<i8", "<i8", "u1", "u1")


class MessageStamp(NamedTuple):
    """One observation of a message; a lag is null where the node did not stamp."""

    event_time_us: int
    message_id: bytes
    stream: str
    node: str
    probe: str
    lag_in_us: int | None
    lag_out_us: int | None
    outcome: str
    reason: str
    id_kind: int = WireIdKind.UNKNOWN
    text: bytes | None = None

    @property
    def shown(self) -> str:
        """The id as it was given."""
        return naming.format_id(self.message_id, self.id_kind, self.text)


def find_part_at(node: str, stamps: Iterable[MessageStamp], sides: str) -> LossPart:
    """Return the part of a node's loss that a message belongs to, by all of its stamps.

    ``sides`` are those that the node stamps; at one that stamps one side any stamp counts for both.
    """
    every = list(stamps)
    here = [one for one in every if one.node == node]
    if not here:
        return LossPart.ON_THE_WAY if every else LossPart.SOMEWHERE
    return LossPart.AFTER if any(has_left(one, sides) for one in here) else LossPart.INSIDE


def has_left(stamp: MessageStamp, sides: str) -> bool:
    """Return whether a stamp says that its node, which stamps these sides, passed the message on."""
    is_passed = stamp.outcome == Outcome.PASSED.name.lower()
    return is_passed and (stamp.lag_out_us is not None or (sides != "both" and stamp.lag_in_us is not None))


_FIRST_ID_FIELD: Final = MessageStamp._fields.index("id_kind")
"""Fields from here on name the message; those before say what was observed."""


def parse_ids(text: str) -> tuple[bytes, ...]:
    """Return the ids that a person may mean: a UUID or its digits, a number, and the text itself.

    What is shown for a text that is not known means its hash.
    """
    text = text.removesuffix(naming.HASH_SUFFIX)
    meant: list[bytes] = []
    with suppress(ValueError):
        meant.append(uuid.UUID(text).bytes)
    if text.isdecimal():
        with suppress(ValueError):  # more digits than Python reads, or than an id has
            meant.append(id_bytes(int(text)))
    return tuple(dict.fromkeys((*meant, id_bytes(text))))


def read_stamps(
    segments: Iterable[Path], wanted: tuple[bytes, ...], stream: str | None = None
) -> Iterator[MessageStamp]:
    """Yield every observation of the wanted ids, in order of event time and node by node as they were stamped."""
    found = [
        stamp for path in segments for stamp in _read_segment_stamps(path, wanted) if stream in (None, stamp.stream)
    ]
    yield from sorted(found, key=_sort_key)


def unite_stamps(*accounts: Iterable[MessageStamp]) -> tuple[MessageStamp, ...]:
    """Return the stamps of several accounts of the same messages, in order.

    What several accounts have is there once; what one of them has twice is there twice.
    """
    found: dict[tuple[Any, ...], list[MessageStamp]] = {}
    for account in accounts:
        here: dict[tuple[Any, ...], list[MessageStamp]] = {}
        for stamp in account:
            here.setdefault(stamp[:_FIRST_ID_FIELD], []).append(stamp)
        for said, stamps_of_one in here.items():
            known = found.setdefault(said, [])
            known += stamps_of_one[len(known) :]
    return tuple(sorted((stamp for alike in found.values() for stamp in alike), key=_sort_key))


def _sort_key(stamp: MessageStamp) -> tuple[int, int]:
    return stamp.event_time_us, stamp.lag_in_us if stamp.lag_in_us is not None else stamp.lag_out_us or 0


def _read_segment_stamps(path: Path, wanted: tuple[bytes, ...]) -> Iterator[MessageStamp]:
    data = segment_records.read_segment(path)
    if any(message_id in data for message_id in wanted):
        for view in segment_records.parse_records(data):
            yield from _read_record_stamps(data, view, wanted)


def _read_record_stamps(data: bytes, view: envelope.RecordView, wanted: tuple[bytes, ...]) -> Iterator[MessageStamp]:
    ids = envelope.read_packed(data, view.message_ids, f"V{ID_BYTES}")
    columns = [envelope.read_packed(data, span, dtype) for span, dtype in zip(view[11:16], _DTYPES, strict=True)]
    texts, ends = data[view.id_texts.start : view.id_texts.end], envelope.read_packed(data, view.id_text_ends, "<u4")
    for message_id in wanted:
        for at in np.flatnonzero(ids == np.void(message_id)).tolist():
            offset_us, lag_in, lag_out, outcome, reason = (int(c[at]) if len(c) else None for c in columns)
            yield MessageStamp(
                view.window_start_ms * 1_000 + (offset_us or 0),
                message_id,
                view.stream,
                view.node,
                view.probe,
                None if lag_in == NOT_STAMPED else lag_in,
                None if lag_out == NOT_STAMPED else lag_out,
                Outcome(outcome or 0).name.lower(),
                "" if reason in (None, NO_REASON) else view.reasons[reason],
                view.id_kind,
                id_texts.get_text(texts, ends, at) if len(ends) else None,
            )
