"""Laws of the settings: every duration is read right, every key has its line, the first layer wins."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.settings import Settings
from hopwatch.monitor.settings.durations import MAX_DURATION_US, parse_duration_us
from hopwatch.monitor.settings.toml_lines import Key, find_key_lines

UNITS_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


@given(st.integers(0, 10**9), st.sampled_from(sorted(UNITS_US)))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    """All that is not longer than ten years is read; the rest is refused."""
    span_us = number * UNITS_US[unit]
    try:
        read_us = parse_duration_us(f"{number}{unit}")
    except ValueError:
        assert span_us > MAX_DURATION_US
    else:
        assert read_us == span_us <= MAX_DURATION_US


WRITTEN_KEYS = st.sampled_from(["{}", '"{}"', "'{}'", '"{} \\" ] = # é"', "'{} . [x]'", '"\\u0041{}"'])
WRITTEN_VALUES = st.sampled_from(
    ["1", '"a = 1"', "'#'", '"""\n[no]\nno = 1\n"""', "'''\n'''", "[\n 1,\n # no\n]", "{ }", "[]", "1979-05-27"]
)
NOISE = st.sampled_from(["", "\n", "# [no]\n", "\n  # no = 1\n"])


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Key, int]]:
    """Return a TOML text and the line on which each of its tables and keys was written."""
    text, lines, number = "", {}, count()

    def written(parts: int) -> tuple[Key, str]:
        shapes = [draw(WRITTEN_KEYS).format(f"k{next(number)}") for _ in range(parts)]
        return tuple(next(iter(tomllib.loads(f"{shape} = 1"))) for shape in shapes), " . ".join(shapes)

    for _ in range(draw(st.integers(0, 4))):
        table, header = written(draw(st.integers(1, 3)))
        text += draw(NOISE)
        lines[table] = text.count("\n") + 1
        text += f"[{header}]  # {{\n"
        for _ in range(draw(st.integers(0, 4))):
            key, name = written(draw(st.integers(1, 3)))
            text += draw(NOISE)
            lines[table + key] = text.count("\n") + 1
            text += f"  {name} = {draw(WRITTEN_VALUES)}\n"
    return text, lines


@given(documents())
def test_every_key_has_the_line_on_which_it_was_written(document: tuple[str, dict[Key, int]]) -> None:
    """Each table and key is found on its line, in any notation, and none is left out."""
    text, written = document
    lines = find_key_lines(text)
    assert {key: lines[key] for key in written} == written
    assert set(_keys(tomllib.loads(text), ())) <= set(lines)


def _keys(table: dict[str, Any], above: Key) -> Iterator[Key]:
    for name, value in table.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from _keys(value, (*above, name))


@given(st.lists(st.one_of(st.none(), st.integers(1, 256)), min_size=1, max_size=4))
def test_the_first_layer_that_says_something_wins(said: list[int | None]) -> None:
    """A key has the value of the first layer that has it, whatever the layers behind it and the keys beside it say."""
    base = {
        "transport": {"url": "spool:/s"},
        "store": {"url": "sqlite:////d"},
        "monitor": {"workdir": "/w"},
        "streams": {"orders": {"path": "a", "shards": 7}},
    }
    layers = [{} if shards is None else {"streams": {"orders": {"shards": shards}}} for shards in said]
    settings = Settings(*layers, base)
    assert settings.streams["orders"].shards == next((shards for shards in said if shards is not None), 7)
    assert settings.streams["orders"].path == ("a",), json.dumps(layers)
