"""Tests of repeated members in JSON: each is found, with its place, and no other."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import json_members, request_bodies
from hopwatch.gate.json_members import REPEATED_MEMBER, find_repeated_member, may_have_repeats
from tests.support.gate_client import EVENTS, GOOD, AtEntrance, post
from tests.support.tap_client import told

KIND: Final = {"content-type": "application/json"}


class Pairs(list[tuple[str, Any]]):
    """An object whose members may stand twice."""


NAMES: Final = st.sampled_from(["a", "b", ":", '":', "a\\", "\u00e9", "~/"]) | st.text(max_size=3)
LEAVES: Final = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5) | NAMES
VALUES: Final = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(NAMES, inner), max_size=4).map(Pairs),
    max_leaves=12,
)


def written(value: Any, is_ascii: bool) -> str:  # noqa: ANN401, FBT001 - JSON, drawn
    """Return a value as JSON, with spaces where they may stand."""
    if isinstance(value, Pairs):
        members = (f"{json.dumps(name, ensure_ascii=is_ascii)} : {written(one, is_ascii)}" for name, one in value)
        return f"{{ {', '.join(members)} }}"
    if isinstance(value, list):
        return f"[{', '.join(written(one, is_ascii) for one in value)}]"
    return json.dumps(value, ensure_ascii=is_ascii)


def is_repeated(value: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether any object has a member twice, by looking at all of them."""
    if isinstance(value, Pairs):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(is_repeated(one) for _, one in value)
    return isinstance(value, list) and any(is_repeated(one) for one in value)


@given(VALUES, st.booleans(), st.booleans())
def test_what_stands_twice_is_found_and_nothing_else(value: Any, is_ascii: bool, is_escaped: bool) -> None:  # noqa: ANN401, FBT001 - drawn
    """Exactly the repeated members are found, however names and texts are written."""
    text = written(value, is_ascii)
    if is_escaped:
        text = text.replace('":"', '"\\u003a"').replace('\\":"', '\\"\\u003A"')
    data = text.encode("utf-8", "surrogatepass")
    assert (find_repeated_member(data) is not None) is is_repeated(value)
    assert may_have_repeats(data) or not is_repeated(value)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"a":1,"a":1}', "/a"),
        (b'{"a":1,"\\u0061":":"}', "/a"),
        (b'{"a":1,"a":"\\u003a"}', "/a"),
        (b'{"a":1,"a":"\\u003A"}', "/a"),
        (b'{"x":[{},{"b/c":{"a":1,"b":2,"a":3}}]}', "/x/1/b~1c/a"),
        (b'{"a":{"a":1},"b":{"a":1}}', None),
        (b'{"a":1,"A":1}', None),
        (b'{"a":"\\"a\\":1"}', None),
        (b'{"a":1,"a":', None),
        (b"[" * 100_000, None),
        (b"\xff", None),
    ],
)
def test_the_place_of_the_first_is_told(data: bytes, place: str | None) -> None:
    """As a JSON pointer; what is no JSON has none."""
    assert find_repeated_member(data) == place
    assert may_have_repeats(data) or place is None


@pytest.mark.parametrize("depth", [1, 253, 254, 255, 300, 900, 1_023, 1_100, 5_000])
def test_no_depth_is_a_fault(depth: int) -> None:
    """JSON of any depth is searched without an error, and JSON that is too deep is refused by others."""
    data = b'{"a":%b%b,"a":1}' % (b"[" * depth, b"]" * depth)
    assert may_have_repeats(data)
    assert find_repeated_member(data) in {"/a", None}
    assert request_bodies.parse_single("1", 0, data).data == data
    assert len(request_bodies.parse_batch(b'[{"id":"1","data":{"a":%b%b}}]' % (b"[" * 250, b"]" * 250))) == 1


def test_what_is_too_large_to_enter_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that is too large is refused for its size, and not searched."""
    monkeypatch.setattr(json_members, "find_repeated_member", lambda _: pytest.fail("it was searched"))
    data = b'{"a":1,"a":"%b"}' % (b"x" * request_bodies.MAX_EVENT_BYTES)
    (found,) = request_bodies.parse_batch(b'[{"id":"1","data":%b}]' % data)
    assert found.faults == ()


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ('{"id":"%s","data":{"price":1,"item":"x","price":2}}', "/1/data/price"),
        ('{"id":"%s","data":{"price":1,"item":"x","price":"\\u003a"}}', "/1/data/price"),
        ('{"id":"%s","data":{"price":1,"item":"x"},"data":{"price":2,"item":"x"}}', "/1/data"),
        ('{"id":"%s","data":{"price":1,"item":"x"},"id":"0192d5a0-0000-7000-8000-000000000001"}', "/1/id"),
        ('{"time":1,"id":"%s","data":{"price":1,"item":"x"},"time":null}', "/1/time"),
    ],
)
def test_an_event_with_a_member_that_stands_twice_may_not_enter(gate: AtEntrance, item: str, place: str) -> None:
    """Nobody knows which was meant; the last one would have been taken."""
    body = f"[{orjson.dumps(gate.event()).decode()},{item % gate.new_id()}]"
    answer = gate.ask("POST", EVENTS, content=body, headers=KIND)
    assert told(answer) == (422, "bad-events", [place])
    assert answer.json()["errors"][0]["detail"] == REPEATED_MEMBER
    assert gate.outlet.left == []
    (kept,) = gate.refused()
    assert kept.owns_id is (place != "/1/id")


def test_an_event_alone_is_held_to_that_too(gate: AtEntrance) -> None:
    """As one of many."""
    path = f"{EVENTS}/{gate.new_id()}"
    answer = gate.ask("PUT", path, content='{"price":1,"item":"x","item":"y"}', headers=KIND)
    assert told(answer) == (422, "bad-events", ["/item"])
    assert gate.ask("PUT", path, GOOD).status_code == 201


def test_colons_in_texts_are_no_members(gate: AtEntrance) -> None:
    """Colons in texts, escaped or not, are not taken for members."""
    assert post(gate, [gate.event({"price": 1, "item": 'a":1,"a":"::'})]).status_code == 201
    escaped = f'[{{"id":"{gate.new_id()}","data":{{"price":1,"item":"\\u003a\\u003A:"}}}}]'
    assert gate.ask("POST", EVENTS, content=escaped, headers=KIND).status_code == 201
    assert [one["item"] for one in gate.values()] == ['a":1,"a":"::', ":::"]
