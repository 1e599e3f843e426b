"""Tests of the flights and of messages made of them."""

from __future__ import annotations

import uuid
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.records import (
    FLIGHT_COUNT,
    FlightMessage,
    RecordsMissingError,
    create_message,
    find_archive,
    pack_message,
    read_flights,
    unpack_message,
    wall_clock_us,
)

values = (
    st.none() | st.text(max_size=20) | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
)
messages = st.builds(
    FlightMessage,
    id=st.binary(min_size=16, max_size=16),
    number=st.integers(0, 2**64 - 1),
    event_time_us=st.integers(-(2**63), 2**63 - 1),
    flight=st.dictionaries(st.text(max_size=10), values, max_size=5),
)


@given(messages)
def test_a_message_is_the_same_on_the_other_side(message: FlightMessage) -> None:
    """Unpacking gives back what was packed."""
    assert unpack_message(pack_message(message)) == message


def test_a_new_message_has_an_id_of_its_own_with_its_time_in_it() -> None:
    """Ids are UUIDs of version 7: no two alike, and their first 48 bits are the moment in ms."""
    before_us = wall_clock_us()
    made = [create_message(number, before_us, {}) for number in range(1000)]
    assert len({message.id for message in made}) == len(made)
    for message in made:
        assert uuid.UUID(bytes=message.id).version == 7
        assert before_us // 1000 <= int.from_bytes(message.id[:6], "big") <= wall_clock_us() // 1000


def test_the_flights_are_those_of_the_package() -> None:
    """The first flight of 2013 is the 5:15 of United from Newark to Houston."""
    first = next(read_flights())
    assert (first["carrier"], first["flight"], first["origin"], first["dest"]) == ("UA", "1545", "EWR", "IAH")


def test_after_the_last_flight_comes_the_first() -> None:
    """The CSV has as many rows as we say, and behind them it starts again, so that the demo never runs dry."""
    last, first, second = islice(read_flights(skip=FLIGHT_COUNT - 1), 3)
    assert (last["month"], last["day"]) == ("9", "30")
    assert [first, second] == list(islice(read_flights(), 2))


def test_missing_flights_are_told_with_the_command_that_installs_them() -> None:
    """Without the package the reader learns its name and what to do."""
    with pytest.raises(RecordsMissingError, match=r"are in no package nothing_13 here: .* pip install nothing_13$"):
        find_archive("nothing_13")
