"""Strategies for the laws of the kernel: pathways of every form, and observations of messages on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.pathway import Pathway
from tests.model import pathway as model
from tests.model.record import DEFERRED, FILTERED, PASSED, REJECTED, Observation
from tests.model.sets import WindowSets

SHAPES: Final = (
    ["a"],
    ["a -> b -> c -> d"],
    ["a -> b | c"],
    ["a -> b | c -> d"],
    ["a -> b & c -> d"],
    ["a -> b & c", "b -> d | e"],
    ["a -> c", "b -> c -> d"],
    ["a -> b | c", "a -> d | e"],
    ["a -> b", "a -> c | d", "b -> e", "c -> e"],
    ["a -> b -> c", "a -> c"],
    ["a -> b | c -> d | e -> f"],
    ["a -> b", "c -> d"],
)
ONE_PLACE: Final = (
    ["a"],
    ["a -> b -> c -> d"],
    ["a -> b | c"],
    ["a -> b | c", "b -> d -> e", "c -> f | g | h"],
    ["a -> b -> c | d", "c -> e | f"],
)
"""Chains and trees of one-of branches."""


class DrawnPathway(NamedTuple):
    """A pathway as the product reads it and as the model does."""

    product: Pathway
    model: model.Pathway


class SeenMessage(NamedTuple):
    """One observation: of which message (a number) at which node, and what it says but the id."""

    message: int
    node: int
    says: Observation


@st.composite
def graphs(draw: st.DrawFn) -> list[str]:
    """Draw a path: from each node arrows to later ones, each arrow to all or to one of some."""
    letters = "abcdef"[: draw(st.integers(2, 6))]
    lines = ["f" if len(letters) == 6 else letters[0]]
    for place, letter in enumerate(letters[:-1]):
        left = draw(st.permutations(letters[place + 1 :]))
        for size in draw(st.lists(st.integers(1, 3), max_size=3)):
            hop, left = left[:size], left[size:]
            if hop:
                lines.append(f"{letter} -> {draw(st.sampled_from((' | ', ' & '))).join(hop)}")
    return lines


ANY_PATH: Final = st.sampled_from(SHAPES) | graphs()


@st.composite
def pathways(draw: st.DrawFn, paths: st.SearchStrategy[list[str]] = ANY_PATH) -> DrawnPathway:
    """Draw a pathway, some of its nodes stamping one side only."""
    path = draw(paths)
    nodes = Pathway.parse(path).nodes
    stamps = draw(st.dictionaries(st.sampled_from(nodes), st.sampled_from(["in", "out", "both"]), max_size=2))
    return DrawnPathway(Pathway.parse(path, stamps), model.parse(path, stamps))


LAGS: Final = st.integers(-(2**40), 2**40) | st.integers(-(2**63) + 1, 2**63 - 1)
OBSERVATIONS: Final = st.one_of(
    st.builds(Observation, st.just(b""), LAGS, LAGS),
    st.builds(Observation, st.just(b""), LAGS, st.none()),
    st.builds(Observation, st.just(b""), st.none(), LAGS),
    st.builds(
        Observation,
        st.just(b""),
        st.none() | LAGS,
        st.none() | LAGS,
        st.sampled_from([PASSED, FILTERED, REJECTED, DEFERRED]),
    ).filter(lambda says: says.outcome != PASSED or (says.lag_in_us, says.lag_out_us) != (None, None)),
)
"""All that an observation may say; the id is left open."""


def seen_messages(pathway: Pathway, messages: int = 6, most: int = 14) -> st.SearchStrategy[list[SeenMessage]]:
    """Draw observations of a few messages anywhere on a pathway, one of them often at several nodes."""
    nodes = st.integers(0, len(pathway.nodes) - 1)
    return st.lists(st.builds(SeenMessage, st.integers(0, messages - 1), nodes, OBSERVATIONS), max_size=most)


def message_id(number: int) -> bytes:
    """Return an id; byte order is not the order of the numbers."""
    return number.to_bytes(8, "little") + (number % 3).to_bytes(8, "big")


def as_model(drawn: DrawnPathway, observations: list[SeenMessage]) -> WindowSets:
    """Return the sets of the reference model."""
    return WindowSets(
        drawn.model, [(drawn.product.nodes[node], _with_id(says, message)) for message, node, says in observations]
    )


def _with_id(says: Observation, message: int) -> Observation:
    return Observation(message_id(message), says.lag_in_us, says.lag_out_us, says.outcome)


def mask_of(pathway: Pathway, observations: list[SeenMessage]) -> Mapping[int, int]:
    """Return each message's mask as one whole number, four bits a node."""
    found: dict[int, int] = {}
    for message, node, says in observations:
        has_in, has_out = says.lag_in_us is not None, says.lag_out_us is not None
        if pathway.stamps[node] != "both":
            has_in = has_out = has_in or has_out
        code = has_in * masks.IN | (has_out and says.passed) * masks.OUT
        code |= {PASSED: 0, FILTERED: masks.FILTERED, REJECTED: masks.REJECTED, DEFERRED: masks.IN}[says.outcome]
        found[message] = found.get(message, 0) | code << 4 * node
    return found
