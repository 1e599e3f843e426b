"""Laws of ids that are shown: as they were given, whatever the order, and whatever a batch says."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks, naming
from hopwatch.monitor.kernel.naming import MAX_TEXT_BYTES, BatchIds, Names
from hopwatch.monitor.lookup.journey import parse_ids
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.id_texts import get_text
from hopwatch.probes.contract.ids import encode_id, id_bytes

GIVEN = st.uuids() | st.binary(min_size=16, max_size=16) | st.integers(0, 2**128 - 1) | st.text(max_size=30)


@given(GIVEN)
def test_what_is_shown_is_found(given_id: Any) -> None:  # noqa: ANN401 - any kind of id
    """An id is found by the text that shows it, with or without its original text."""
    wire, kind, text = encode_id(given_id)
    assert wire in parse_ids(naming.format_id(wire, kind, text))
    assert wire in parse_ids(naming.format_id(wire, kind))


@given(st.uuids(), st.integers(0, 2**128 - 1), st.text(max_size=30), st.binary(min_size=16, max_size=16))
def test_an_id_is_shown_as_it_was_given(one: uuid.UUID, number: int, text: str, raw: bytes) -> None:
    """A UUID with hyphens, an integer in decimal, a text as it is, and bytes in hexadecimal."""
    assert naming.format_id(one.bytes, WireIdKind.UUID) == str(one)
    assert naming.format_id(id_bytes(number), WireIdKind.INT) == str(number)
    assert naming.format_id(id_bytes(text), WireIdKind.TEXT, text.encode()) == text
    assert naming.format_id(raw, WireIdKind.BYTES) == naming.format_id(raw, WireIdKind.UNKNOWN) == raw.hex()


@given(st.binary(min_size=16, max_size=16), st.none() | st.binary(max_size=20))
def test_a_text_that_is_not_its_own_is_not_shown(message_id: bytes, text: bytes | None) -> None:
    """A batch may say anything: what does not hash to the id is shown as the hash of a text."""
    assert naming.format_id(message_id, WireIdKind.TEXT, text) == f"{message_id.hex()} (hash of a text)"


NAMES = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 4]), st.none()) | st.tuples(st.just(3), st.none() | st.binary(max_size=9)),
    max_size=20,
)


@given(NAMES)
def test_names_that_are_packed_are_unpacked(rows: list[tuple[int, bytes | None]]) -> None:
    """Kinds and texts come back, the empty text and the one that was left out told apart."""
    texts = np.full(len(rows), None, object)
    texts[:] = [text for _, text in rows]
    names = Names(np.array([kind for kind, _ in rows], np.uint8), texts)
    back = naming.unpack_names(*naming.pack_names(names))
    assert (back.kinds.tolist(), back.texts.tolist()) == (names.kinds.tolist(), names.texts.tolist())


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[int, int, list[str], bool]]:
    """Draw batches of texts: node, kind that is said, texts, and whether these are sent."""
    texts = st.lists(st.sampled_from(["a", "b", "", "x" * 300, "ü"]), min_size=1, max_size=4)
    batch = st.tuples(st.integers(0, 2), st.sampled_from([0, 3, 3, 4]), texts, st.booleans())
    return draw(st.lists(batch, min_size=1, max_size=6))


def _named(rows: list[tuple[int, int, list[str], bool]]) -> dict[bytes, tuple[int, bytes | None]]:
    said, ids = [], b""
    for node, kind, texts, has_texts in rows:
        encoded = [text.encode() for text in texts]
        ends = np.cumsum(list(map(len, encoded))).astype(np.uint32)
        is_sent = has_texts and kind == WireIdKind.TEXT
        laid_out = np.frombuffer(b"".join(encoded), np.uint8)
        said.append(BatchIds(node, kind, partial(get_text, laid_out, ends) if is_sent else None, None))
        ids += b"".join(map(id_bytes, texts))
    of_all = masks.ids_from_bytes(ids)
    groups = masks.group_by_id(of_all)
    counts = np.array([len(texts) for _, _, texts, _ in rows], np.int64)
    message, at = masks.find_observations(groups, np.arange(len(groups.starts)))
    batch = np.repeat(np.arange(len(rows)), counts)[at]
    mine = of_all[groups.order[groups.starts]]
    names = naming.resolve_names(mine, message, batch, at - (np.cumsum(counts) - counts)[batch], said)
    packed = [np.ascontiguousarray(one).tobytes() for one in mine]
    return dict(zip(packed, zip(names.kinds.tolist(), names.texts.tolist(), strict=True), strict=True))


@given(batches(), st.randoms())
def test_names_go_by_the_pathway_and_not_by_order(rows: list[tuple[int, int, list[str], bool]], chance: Any) -> None:  # noqa: ANN401
    """The kind is that of the first node which says one, the text any that was sent; in any order, told one by one."""
    found = _named(rows)
    shuffled = [(node, kind, [text], has_texts) for node, kind, texts, has_texts in rows for text in texts]
    chance.shuffle(shuffled)
    assert _named(shuffled) == found
    for text in {text for _, _, texts, _ in rows for text in texts}:
        own = [(node, kind, has_texts) for node, kind, texts, has_texts in rows if text in texts]
        kind = min(
            ((node, kind) for node, kind, _ in own if kind != WireIdKind.UNKNOWN), default=(0, WireIdKind.UNKNOWN)
        )[1]
        is_sent = any(has_texts and of == WireIdKind.TEXT for _, of, has_texts in own)
        is_kept = kind == WireIdKind.TEXT and is_sent and len(text.encode()) <= MAX_TEXT_BYTES
        assert found[id_bytes(text)] == (kind, text.encode() if is_kept else None)
