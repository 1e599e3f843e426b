"""Laws of ids by the many: what is taken at once is what is taken one by one, whatever a host hands over."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes import id_columns
from hopwatch.probes.contract.ids import EncodedId, IdError
from hopwatch.probes.contract.ids import encode_id as named_one

GOOD = (
    st.uuids()
    | st.binary(min_size=16, max_size=16)
    | st.integers(0, 2**128 - 1)
    | st.text(max_size=20)
    | st.integers(0, 2**63 - 1).map(np.int64)
)
ODD = st.none() | st.floats() | st.booleans() | st.binary(max_size=15) | st.integers(max_value=-1) | st.just(2**128)


class Hostile(str):
    """A text of a host's own class, which fails."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        """Fail as no library would."""
        raise RuntimeError("no bytes today")


class HostileUuid(uuid.UUID):
    """A UUID of a host's own class, whose bytes are none."""

    bytes = property(lambda _: 17)


HOSTILE = st.just(Hostile("x")) | st.just(HostileUuid(int=1))


def _one_by_one(message_id: Any) -> EncodedId | None:  # noqa: ANN401 - of a host
    try:
        return named_one(message_id)
    except IdError:
        return None


@given(st.lists(GOOD | ODD, max_size=20) | st.lists(st.uuids()) | st.lists(st.text()) | st.lists(st.integers()))
def test_many_ids_are_what_each_is(message_ids: list[Any]) -> None:
    """Bytes, kind and text of each, and which cannot be, are those of the id alone; alike or mixed."""
    found = id_columns.encode_ids(message_ids)
    for place, message_id in enumerate(message_ids):
        alone = _one_by_one(message_id)
        assert bool(found.is_valid[place]) == (alone is not None)
        if alone is not None:
            assert (found.ids[place].tobytes(), int(found.kinds[place]), found.texts[place]) == alone
    assert bool(found.bad_types) == (not found.is_valid.all())


@given(st.lists(GOOD, max_size=5), st.lists(HOSTILE, min_size=1, max_size=2), st.randoms())
def test_a_hostile_id_costs_itself_alone(good: list[Any], hostile: list[Any], chance: Any) -> None:  # noqa: ANN401
    """An id that raises any error is invalid, the others are encoded, and no error gets out."""
    message_ids = [*good, *hostile]
    chance.shuffle(message_ids)
    found = id_columns.encode_ids(message_ids)
    expected = [not isinstance(one, Hostile | HostileUuid) for one in message_ids]
    assert found.is_valid.tolist() == expected
