"""Tests of the lines of keys, one a way to write them; that no key goes without its line is a law."""

from __future__ import annotations

import pytest

from hopwatch.monitor.settings.toml_lines import Key, find_key_lines

TEXT = '''# a comment
[transport]
url = "spool:./x"
[streams.orders]
path = [
  "a -> b",  # with a comment
  # and one of its own
  "b -> c",
]
note = """
[not] = "a table"
"""
stamps = { a = "in",
  b.c = "out" }
deep.er = [ { x = 1 },
  [ 2,
    3 ] ]
[streams."with.dot"]
'path' = "a"
"tr\\u0061nsit" = "1s"
[[several]]
first = 1
[[several]]
second = 2
[several.below]
third = 3
[[several.more]]
fourth = 4
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("transport",), 2),
        (("transport", "url"), 3),
        (("streams",), 4),
        (("streams", "orders"), 4),
        (("streams", "orders", "path"), 5),
        (("streams", "orders", "path", 0), 6),
        (("streams", "orders", "path", 1), 8),
        (("streams", "orders", "note"), 10),
        (("streams", "orders", "stamps"), 13),
        (("streams", "orders", "stamps", "a"), 13),
        (("streams", "orders", "stamps", "b"), 14),
        (("streams", "orders", "stamps", "b", "c"), 14),
        (("streams", "orders", "deep"), 15),
        (("streams", "orders", "deep", "er", 0, "x"), 15),
        (("streams", "orders", "deep", "er", 1, 1), 17),
        (("streams", "with.dot"), 18),
        (("streams", "with.dot", "path"), 19),
        (("streams", "with.dot", "transit"), 20),
        (("several",), 21),
        (("several", 0), 21),
        (("several", 0, "first"), 22),
        (("several", 1), 23),
        (("several", 1, "second"), 24),
        (("several", 1, "below"), 25),
        (("several", 1, "below", "third"), 26),
        (("several", 1, "more"), 27),
        (("several", 1, "more", 0), 27),
        (("several", 1, "more", 0, "fourth"), 28),
    ],
)
def test_the_line_of_a_key(key: Key, line: int) -> None:
    """Tables, plain, quoted and dotted keys, inline tables and elements of long arrays have their line."""
    assert find_key_lines(TEXT)[key] == line


def test_what_stands_in_a_text_is_no_key() -> None:
    """A table in a text of several lines is text."""
    assert not any("not" in key for key in find_key_lines(TEXT))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_both_line_ends(end: str) -> None:
    """A file from Windows has the same lines."""
    assert find_key_lines(end.join(["# é", "[a]", "", "b = 1"]))[("a", "b")] == 4
