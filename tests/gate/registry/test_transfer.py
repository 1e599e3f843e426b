"""Tests of a registry as one file: what goes out comes in again, once, and never against what is there."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.registry.transfer import (
    ContradictionError,
    FileFormError,
    ImportCounts,
    export_registry,
    import_registry,
)
from tests.support.examples import examples
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import BROKEN, FIRST, SCHEMAS, SECOND, Json, schema

LEVELS = st.sampled_from(CompatibilityLevel)


def filled(*said: tuple[str, Json], levels: dict[str, CompatibilityLevel] | None = None) -> MemoryShelf:
    """Return the store of a registry with these versions and levels, whatever fits."""
    shelf = MemoryShelf()
    registry = Registry(shelf)
    registry.set_level(CompatibilityLevel.NONE)
    for subject, one in said:
        registry.register(subject, schema(one))
    shelf.levels.clear()
    shelf.levels.update({subject: level.value for subject, level in (levels or {}).items()})
    return shelf


def content(shelf: MemoryShelf) -> object:
    """Return all that a store holds."""
    return dict(shelf.schemas), dict(shelf.versions), dict(shelf.levels)


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c.d"]), st.sampled_from([FIRST, SECOND, BROKEN]) | SCHEMAS), max_size=6
    ),
    st.dictionaries(st.sampled_from(["", "a", "x"]), LEVELS, max_size=3),
    st.integers(0, 6),
)
def test_what_goes_out_comes_in(
    said: list[tuple[str, Json]], levels: dict[str, CompatibilityLevel], beginning: int
) -> None:
    """Into an empty registry, one with the beginning of it, or itself; the second time nothing is new."""
    whole = filled(*_with_one_meaning(said), levels=levels)
    text = export_registry(whole)
    for target in (MemoryShelf(), filled(*_with_one_meaning(said)[:beginning]), whole):
        import_registry(target, text)
        assert content(target) == content(whole)
        assert export_registry(target) == text
        assert import_registry(target, text) == ImportCounts(0, 0, 0)


def _with_one_meaning(said: list[tuple[str, Json]]) -> list[tuple[str, Json]]:
    """Leave out schemas whose fingerprint stands for another one."""
    meanings: dict[bytes, str] = {}
    made = [(one, schema(one[1])) for one in said]
    return [one for one, new in made if meanings.setdefault(new.fingerprint, new.meaning) == new.meaning]


def test_the_file_is_in_order() -> None:
    """By number and by name, whatever was registered first: two files can be compared line by line."""
    shelf = filled(("b", FIRST), ("a", SECOND), ("b", SECOND), levels={"": CompatibilityLevel.FULL})
    fingerprints = [schema(one).fingerprint.hex() for one in (FIRST, SECOND)]
    assert orjson.loads(export_registry(shelf)) == {
        "hopwatch_schemas": 1,
        "compatibility": "full",
        "schemas": [
            {"id": 1, "fingerprint": fingerprints[0], "schema": FIRST},
            {"id": 2, "fingerprint": fingerprints[1], "schema": SECOND},
        ],
        "subjects": [
            {"subject": "a", "compatibility": None, "versions": [{"version": 1, "id": 2}]},
            {"subject": "b", "compatibility": None, "versions": [{"version": 1, "id": 1}, {"version": 2, "id": 2}]},
        ],
    }


DEFAULTED = {**SECOND, "fields": [SECOND["fields"][0], {**SECOND["fields"][1], "default": 8}]}


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (filled(("a", SECOND)), "the number 1 is that of another schema here than in the file"),
        (filled(("a", BROKEN), ("a", FIRST)), "has the number 2 here, and 1 in the file: readers by number would take"),
        (filled(("a", FIRST), ("a", DEFAULTED)), "the schema 2 differs here in logical types, defaults, aliases or"),
        (filled(("c", FIRST), ("b", SECOND)), "version 1 of b is the schema 2 here, and 1 in the file"),
        (filled(("b", FIRST), levels={"b": CompatibilityLevel.NONE}), "the compatibility of b is none here, and full"),
        (filled(("b", FIRST), levels={"": CompatibilityLevel.NONE}), "the compatibility of all subjects is none here"),
    ],
)  # fmt: skip
def test_what_contradicts_the_registry_is_refused_whole(there: MemoryShelf, told: str) -> None:
    """One line that says which of the two is what; nothing of the file is taken."""
    both = {"b": CompatibilityLevel.FULL, "": CompatibilityLevel.FORWARD}
    text = export_registry(filled(("b", FIRST), ("a", SECOND), levels=both))
    before = content(there)
    with pytest.raises(ContradictionError, match=re.escape(told)) as refused:
        import_registry(there, text)
    assert content(there) == before
    assert "\n" not in str(refused.value)


def test_what_is_there_beyond_the_file_stays() -> None:
    """An import adds; it takes nothing away."""
    text = export_registry(filled(("a", FIRST)))
    more = filled(("a", FIRST), ("a", SECOND), ("c", BROKEN), levels={"a": CompatibilityLevel.FULL})
    before = content(more)
    assert import_registry(more, text) == ImportCounts(0, 0, 0)
    assert content(more) == before


def changed(place: str, value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a file in which something is otherwise."""
    file = orjson.loads(export_registry(filled(("a", FIRST), ("a", SECOND))))
    *way, last = [int(part) if part.isdecimal() else part for part in place.split("/")]
    part: Any = file
    for step in way:
        part = part[step]
    part[last] = value
    return orjson.dumps(file)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "it is no JSON: "),
        (b"[]", "it is no export of a registry: /: "),
        (changed("hopwatch_schemas", 2), "it is no export of a registry: /hopwatch_schemas: Input should be 1"),
        (changed("more", 2), "/more: Extra inputs are not permitted"),
        (changed("schemas/0/id", "1"), "/schemas/0/id: Input should be a valid integer"),
        (changed("subjects/0/subject", "a b"), "/subjects/0/subject: String should match pattern"),
        (changed("subjects/0/compatibility", "some"), "/subjects/0/compatibility: Input should be 'none', "),
        (changed("schemas/1/id", 1), "the schema 1 stands in it 2 times"),
        (changed("schemas/0/fingerprint", "0" * 64), f"has the fingerprint {schema(FIRST).fingerprint.hex()}, and"),
        (changed("schemas/0/schema", {"type": "array", "items": "null"}), "the schema 1 is refused: /: an item of"),
        (changed("subjects/0/versions/1/version", 1), "a version of a: 1 stands in it 2 times"),
        (changed("subjects/0/versions/1/id", 3), "version 2 of a is the schema 3, which is missing"),
        (changed("subjects/0/versions/1/version", 3), "version 2 of a is missing"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_told(data: bytes, told: str) -> None:
    """With the place in it; nothing is taken."""
    shelf = MemoryShelf()
    with pytest.raises(FileFormError, match=re.escape(told)):
        import_registry(shelf, data)
    assert content(shelf) == content(MemoryShelf())
