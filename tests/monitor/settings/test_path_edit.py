"""Tests of edits of a path in a configuration."""

from __future__ import annotations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.placement import Arrow, PathEdit
from hopwatch.monitor.pathway import Pathway, PathwayError
from hopwatch.monitor.settings.path_edit import edit_chains, edit_deadlines, edit_path
from tests.support.path_arrows import read_arrows

TEXT = """# top
[streams.orders] # of the shop
path = [
    "a -> b", # the front door
    # then
    "b -> c -> d", # and out
]
transit = "20s"

[streams.pings]
path = "p -> q"
"""
SERIAL = PathEdit((("b", ("c",)),), (("b", ("x",)), ("x", ("c",))))
NAMES = [f"n{number}" for number in range(7)]


@st.composite
def paths(draw: st.DrawFn) -> list[str]:
    """Draw a path of some chains, whose arrows lead from a smaller number to a greater one."""
    chains = []
    for _ in range(draw(st.integers(1, 3))):
        ends = sorted(draw(st.sets(st.integers(1, len(NAMES) - 1), min_size=1, max_size=3)) | {0})
        hops = [NAMES[begin:end] for begin, end in zip(ends, [*ends[1:], len(NAMES)], strict=True)]
        picked = [draw(st.lists(st.sampled_from(hop), min_size=1, max_size=3, unique=True)) for hop in hops]
        chains.append(" -> ".join(draw(st.sampled_from([" | ", " & "])).join(names) for names in picked))
    try:
        Pathway.parse(chains)
    except PathwayError:
        reject()
    return chains


@given(paths(), st.data())
def test_an_edit_changes_its_arrows_and_no_other(path: list[str], data: st.DataObject) -> None:
    """In whatever chain they stand, and however often: a node is put between, beside, or before some targets."""
    found = sorted((source, tuple(sorted(targets))) for source, targets in read_arrows(path))
    chosen = data.draw(st.lists(st.sampled_from(found), unique=True, max_size=2))
    kind = data.draw(st.sampled_from(["between", "beside"]))
    removed: list[Arrow] = [*chosen]
    added: list[Arrow] = [(source, ("x",) if kind == "between" else (*targets, "x")) for source, targets in chosen]
    added += [("x", targets) for _, targets in chosen] or [("x", ("n6",))]
    added = list(dict.fromkeys(added))
    wanted = {
        (source, frozenset(targets)) for source, targets in [*(one for one in found if one not in chosen), *added]
    }
    try:
        made = [chain for chains in edit_chains(path, PathEdit(tuple(removed), tuple(added))) for chain in chains]
    except PathwayError:
        # An arrow of two kinds, or a cycle: no path says that.
        return
    assert read_arrows(made) == wanted


def test_comments_and_other_lines_stay() -> None:
    """The chain that changes is replaced in its place; all else is as it was, byte for byte."""
    assert edit_path(TEXT, "orders", SERIAL, "both", "x") == TEXT.replace("b -> c -> d", "b -> x -> c -> d")


def test_a_chain_that_falls_apart_takes_several_lines() -> None:
    """In its own place, behind the comment of the first one."""
    edit = PathEdit((("b", ("c",)),), (("b", ("c", "x")), ("x", ("c",))))
    lines = edit_path(TEXT, "orders", edit, "both", "x").splitlines()
    assert [line.strip() for line in lines[2:9]] == [
        "path = [", '"a -> b", # the front door', "# then", '"b -> c | x", # and out', '"x -> c",', '"c -> d",', "]"
    ]  # fmt: skip


def test_a_path_that_is_a_text_becomes_a_list_where_it_must() -> None:
    """A node in the middle stays in the text; another way does not fit into one chain."""
    between = PathEdit((("p", ("q",)),), (("p", ("x",)), ("x", ("q",))))
    assert edit_path(TEXT, "pings", between, "both", "x").endswith('path = "p -> x -> q"\n')
    beside = PathEdit((("p", ("q",)),), (("p", ("q", "x")), ("x", ("q",))))
    assert edit_path(TEXT, "pings", beside, "both", "x").endswith('path = ["p -> q | x", "x -> q"]\n')


@pytest.mark.parametrize("more", ["", 'stamps = { a = "out" }\n', '[streams.pings.stamps]\np = "out"\n'])
def test_a_node_that_stamps_one_side_is_said_to(more: str) -> None:
    """In the table of stamps, which is made if there is none."""
    edit = PathEdit((), (("q", ("x",)),))
    made = edit_path(TEXT + more.replace("a =", "p ="), "pings", edit, "in", "x")
    assert 'x = "in"' in made
    assert ('p = "out"' in made) == bool(more)


def test_a_path_that_the_file_does_not_have_is_edited_by_hand() -> None:
    """Environment may set it."""
    with pytest.raises(ConfigurationError) as refused:
        edit_path(TEXT, "flights", SERIAL, "both", "x")
    assert str(refused.value) == "the configuration has no path of 'flights': it is set elsewhere, edit it there"


def test_a_path_that_would_be_none_is_refused() -> None:
    """Such as a cycle."""
    with pytest.raises(PathwayError, match="cycle"):
        edit_chains(["a -> b"], PathEdit((), (("b", ("a",)),)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('path = "a -> b" # it\n', 'path = "a -> b" # it\ndeadline = {a = "5s", b = "1500ms"}\n'),
        ('path = "a -> b"', 'path = "a -> b"\ndeadline = {a = "5s", b = "1500ms"}'),
        ('path = "a -> b"\r\n', 'path = "a -> b"\r\ndeadline = {a = "5s", b = "1500ms"}\r\n'),
        (
            'path = "a -> b"\n# our own\ndeadline = "9s" # for all\norder = true\n',
            'path = "a -> b"\n# our own\ndeadline = {a = "5s", b = "1500ms"} # for all\norder = true\n',
        ),
        (
            'path = "a -> b"\ndeadline = { b = "9s", c = "1s" }\n',
            'path = "a -> b"\ndeadline = {a = "5s", b = "1500ms"}\n',
        ),
        (
            'path = "a -> b"\n[streams.orders.deadline]\nb = "9s" # slow\nc = "1s"',
            'path = "a -> b"\n[streams.orders.deadline]\nb = "1500ms" # slow\na = "5s"\n',
        ),
    ],
)
def test_deadlines_are_set_beside_the_path_or_where_they_were(before: str, after: str) -> None:
    """Comments and line ends stay, and a table behind has its own comment."""
    table, behind = "[streams.orders]\n", "\n# about pings\n[streams.pings]\npath = 'p -> q'\n"
    rest = behind if before.endswith("\n") else ""
    edited = edit_deadlines(table + before + rest, "orders", {"a": 5_000_000, "b": 1_500_000})
    assert edited == table + after + rest


@pytest.mark.parametrize("text", ["", "[streams.pings]\npath = 'p -> q'\n"])
def test_deadlines_of_a_stream_that_is_set_elsewhere_are_refused(text: str) -> None:
    """The file would have a table without a path."""
    told = "the configuration has no path of 'orders': it is set elsewhere, edit it there"
    with pytest.raises(ConfigurationError) as error:
        edit_deadlines(text, "orders", {"a": 1_000_000})
    assert str(error.value) == told
