"""Line numbers of the keys in a TOML text, which the standard library's parser does not give."""

from __future__ import annotations

import tomllib
from typing import Final

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Key = tuple[str | int, ...]
"""Path to a value: the keys of its tables and its own, and an index for the place in an array."""

_TOML: Final = Language(tree_sitter_toml.language())
_KEYS: Final = frozenset({"bare_key", "quoted_key", "dotted_key"})
_ARRAY: Final = "table_array_element"
_TABLES: Final = frozenset({"table", _ARRAY})


def find_key_lines(text: str) -> dict[Key, int]:
    """Return the line, counted from 1, of each table, key and array element of a valid TOML text.

    An implicit table has the line of the first key below it. The tables of an array have indices from 0 after the name
    of the array, whose own line is that of the first table.
    """
    lines: dict[Key, int] = {}
    arrays: dict[Key, int] = {}
    for child in Parser(_TOML).parse(text.encode()).root_node.named_children:
        if child.type in _TABLES:
            _note_pairs(child, _note_table(child, lines, arrays), lines)
        elif child.type == "pair":
            _note_pair(child, (), lines)
    return lines


def _note_table(table: Node, lines: dict[Key, int], arrays: dict[Key, int]) -> Key:
    """Note the line of a table's header, and return the key that it stands for; ``arrays`` counts those of arrays."""
    header = table.named_children[0]
    key: Key = ()
    for part in _key_parts(header):
        if key in arrays:
            # What is below an array is in the last of its tables.
            key = (*key, arrays[key])
        key = (*key, part)
        lines.setdefault(key, _line_number(header))
    if table.type == _ARRAY:
        arrays[key] = arrays.get(key, -1) + 1
        key = (*key, arrays[key])
    lines[key] = _line_number(header)
    return key


def _note_pairs(node: Node, above: Key, lines: dict[Key, int]) -> None:
    """Note the pairs that stand directly in a table or in an inline table."""
    for child in node.named_children:
        if child.type == "pair":
            _note_pair(child, above, lines)


def _note_pair(pair: Node, above: Key, lines: dict[Key, int]) -> None:
    _note_value(pair.named_children[-1], _note_key(pair.named_children[0], above, lines), lines)


def _note_value(value: Node, key: Key, lines: dict[Key, int]) -> None:
    if value.type == "inline_table":
        _note_pairs(value, key, lines)
    elif value.type == "array":
        elements = [element for element in value.named_children if element.type != "comment"]
        for place, element in enumerate(elements):
            lines[*key, place] = _line_number(element)
            _note_value(element, (*key, place), lines)


def _note_key(node: Node, above: Key, lines: dict[Key, int]) -> Key:
    """Note the line of a key, and of the tables that a dotted one makes on its way; return the whole key."""
    parts = _key_parts(node)
    for end in range(1, len(parts)):
        lines.setdefault((*above, *parts[:end]), _line_number(node))
    key = (*above, *parts)
    lines[key] = _line_number(node)
    return key


def _key_parts(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        return tuple(part for child in node.named_children if child.type in _KEYS for part in _key_parts(child))
    text = (node.text or b"").decode()
    # A quoted key has all the escapes of a string.
    return (str(tomllib.loads(f"key = {text}")["key"]) if node.type == "quoted_key" else text,)


def _line_number(node: Node) -> int:
    return node.start_point.row + 1
