"""Tests of stored pathways: a text on disk that later versions read, too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store.stored_pathway import StoredPathway, decode_pathways, encode_pathways
from hopwatch.monitor.stream_config import StreamConfig
from tests.laws.strategies import DrawnPathway, pathways

TEXT = (
    '{"orders": [["a", "b", "c", "d"], [[0, 1, 2], [1, 3]], ["both", "in", "both", "both"], 2], '
    '"pings": [["p"], [], ["both"], 1]}'
)


def test_the_text_is_that_of_every_store_so_far() -> None:
    """By stream: nodes, arrows by places with their source first, stamped sides, shards."""
    orders = StoredPathway(Pathway.parse(["a -> b | c", "b -> d"], {"b": "in"}), 2)
    pings = StoredPathway(Pathway.parse("p"), 1)
    assert encode_pathways({"pings": pings, "orders": orders}) == TEXT
    assert decode_pathways(TEXT) == {"orders": orders, "pings": pings}


def test_a_new_store_has_none() -> None:
    """A new store has no pathways."""
    assert decode_pathways(None) == {}


@given(pathways(), st.integers(1, 64))
def test_what_is_read_is_what_was_written(drawn: DrawnPathway, shards: int) -> None:
    """A stored pathway is read as it was written, without the parts on which no tally depends."""
    config = StreamConfig(drawn.product, WindowPolicy(1, 2, 3, 4), shards, ("elsewhere",))
    stored = StoredPathway.from_config(config)
    assert decode_pathways(encode_pathways({"orders": stored})) == {"orders": stored}
    assert (stored.pathway, stored.shards) == (drawn.product, shards)
