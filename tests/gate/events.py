"""Strategies of events: values as JSON has them, and as Avro reads them."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import strategies as st

from tests.support.schemas import Json

SIMPLE = {
    "null": st.none().map(lambda one: (one, one)),
    "boolean": st.booleans().map(lambda one: (one, one)),
    "int": st.integers(-(2**31), 2**31 - 1).map(lambda one: (one, one)),
    "long": st.integers(-(2**63), 2**63 - 1).map(lambda one: (one, one)),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda one: (one, one)),
    "double": st.floats(allow_nan=False, allow_infinity=False).map(lambda one: (one, one)),
    "string": st.text(st.characters(exclude_categories=["Cs"])).map(lambda one: (one, one)),
    "bytes": st.binary().map(lambda one: (b64encode(one).decode(), one)),
}
LOOKS = {"null": "null", "boolean": "boolean", "int": "number", "long": "number", "float": "number", "double": "number",
         "string": "text", "bytes": "text", "enum": "text", "fixed": "text", "array": "array", "map": "object",
         "record": "object"}  # fmt: skip


def kind(said: Json) -> str:
    """Return what a type is."""
    return said if isinstance(said, str) else said["type"]


@st.composite
def events(draw: st.DrawFn, said: Json) -> tuple[Json, Json]:  # noqa: PLR0911 - one a kind of type
    """Return a value as JSON has it, and as Avro's library reads it."""
    if isinstance(said, list):
        branch = draw(st.sampled_from(said))
        written, read = draw(events(branch))
        looks = [LOOKS[kind(one)] for one in said]
        is_plain = len(set(looks)) == len(looks) or kind(branch) == "null"
        name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        return (written if is_plain else {name: written}), read
    match kind(said):
        case "enum":
            one = draw(st.sampled_from(said["symbols"]))
            return one, one
        case "fixed":
            data = draw(st.binary(min_size=said["size"], max_size=said["size"]))
            return b64encode(data).decode(), data
        case "array":
            items = draw(st.lists(events(said["items"]), max_size=3))
            return [one for one, _ in items], [one for _, one in items]
        case "map":
            values = draw(st.dictionaries(st.text("abc", max_size=2), events(said["values"]), max_size=3))
            return {key: one for key, (one, _) in values.items()}, {key: one for key, (_, one) in values.items()}
        case "record":
            members, read = {}, {}
            for field in said["fields"]:
                written, value = draw(events(field["type"]))
                if "default" in field and draw(st.booleans()):
                    read[field["name"]] = field["default"]
                    continue
                members[field["name"]], read[field["name"]] = written, value
            return members, read
        case simple:
            return draw(SIMPLE[simple])


def with_event(said: Json) -> st.SearchStrategy[tuple[Json, tuple[Json, Json]]]:
    """Return a schema and an event of it."""
    return st.tuples(st.just(said), events(said))
