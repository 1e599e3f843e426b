"""Laws of servers: who saw which messages, in any order and in any shards; and how much of it is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks, reconciliation
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.packets import Packet
from hopwatch.monitor.kernel.reconciliation import CountedServer, ServersBeside, compare_servers, find_missing
from hopwatch.monitor.kernel.servers import ServerIds
from hopwatch.monitor.kernel.tally import LostIds, Tally, build_tally, instance_name, merge_tallies
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import ServerCount
from tests.model.counts import fingerprint, server_of
from tests.support.batch_arrays import make_batch

PATHWAY: Final = Pathway.parse("a -> n -> b -> m -> c", {"n": "count", "m": "count"})
END_US: Final = 60
SIDES: Final = ((0, True), (1, False), (1, True), (2, False))
"""What is kept of each node: b stands behind one that counts, and before another."""
NAMES: Final = st.sampled_from(["server-7", "server-7-0123456789abcdef", "nul\0", "p" * 128, "-0123456789abcdef"])


@dataclass(frozen=True)
class Seen:
    """One observation: at a node, by a probe, of a message, that arrived there, or left it, too."""

    node: int
    probe: str
    epoch_us: int
    message: int
    has_left: bool

    @property
    def batch(self) -> ObservedBatch:
        """The batch that holds it alone."""
        batch = make_batch(self.node, [self.message.to_bytes(16, "big")], [10], [30 if self.has_left else None])
        return batch._replace(instance=instance_name("x", self.probe, self.epoch_us))


observations: Final = st.lists(
    st.builds(Seen, st.integers(0, 2), NAMES, st.integers(0, 1), st.integers(0, 9), st.booleans()), max_size=30
)


def _tally(seen: list[Seen]) -> Tally:
    return build_tally(PATHWAY, [one.batch for one in seen], END_US)


@given(observations)
def test_of_each_server_the_distinct_messages_count(seen: list[Seen]) -> None:
    """Sets of ids say the same, whatever came twice and by any of its instances or files, and so does the print."""
    expected = []
    for node, has_left in SIDES:
        for server in {server_of(one.probe) for one in seen}:
            ids = {
                one.message.to_bytes(16, "big")
                for one in seen
                if (one.node, server_of(one.probe)) == (node, server) and (one.has_left or not has_left)
            }
            if ids:
                id_xor, id_sum = (half % 2**64 for half in fingerprint(ids))
                expected.append(ServerIds(node, has_left, server, len(ids), id_xor, id_sum))
    tally = _tally(seen)
    assert tally.servers == tuple(sorted(expected))
    assert unpack_tally(pack_tally(tally)).servers == tally.servers


@given(observations, st.data(), st.integers(1, 4))
def test_shards_and_orders_change_nothing(seen: list[Seen], data: st.DataObject, shards: int) -> None:
    """Sums of the shards of a window are those of the whole, name by name."""
    shuffled = data.draw(st.permutations(seen))
    of_shard = [
        [one for one in shuffled if masks.shard_of(one.batch.message_ids, shards)[0] == shard]
        for shard in range(shards)
    ]
    assert merge_tallies([_tally(part) for part in of_shard]).servers == _tally(seen).servers


@given(st.dictionaries(st.text(max_size=3), st.tuples(st.integers(0, 2), st.none() | st.integers(0, 2)), max_size=9))
def test_of_more_names_than_are_listed_those_that_differ_stay(
    given_counts: dict[str, tuple[int, int | None]],
) -> None:
    """In order of their names, whatever is left out; only where there is something to compare with can one differ."""
    counted = {name: CountedServer(Packet(count), Packet(count)) for name, (count, _) in given_counts.items()}
    seen = {name: Packet(ids) for name, (_, ids) in given_counts.items() if ids is not None}
    with mock.patch.object(reconciliation, "MAX_SERVERS", 3):
        told = [one.probe for one in compare_servers(counted, ServersBeside({}, seen, None, is_alone=True))]
    differs = {name for name, (count, ids) in given_counts.items() if seen and count != (ids or 0)}
    assert told == sorted(told)
    assert set(told) == set(sorted(given_counts, key=lambda name: (name not in differs, name))[:3])


def test_what_is_missing_is_not_told_where_not_all_stamps_were_kept() -> None:
    """Ids without journeys, as of records that cannot be read again, are of nobody; of no ids none is missing."""
    lost = LostIds.from_ids(masks.ids_from_bytes(bytes(32)))
    assert find_missing(lost, "a", "b", is_one_sided=False) is None
    assert find_missing(lost.before(0).taken(np.zeros(0, np.int64)), "a", "b", is_one_sided=False) == {}
    told = compare_servers({}, ServersBeside({"s": Packet(2)}, {}, None, is_alone=True))
    assert told == (ServerCount("s", None, left_before=2),)


def test_a_tally_of_before_there_were_servers_is_read() -> None:
    """A checkpoint without them says nothing of them, which shows as unknown."""
    packed = pack_tally(_tally([Seen(0, "p", 0, 1, has_left=True)]))
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    del header["servers"]
    head = json.dumps(header).encode()
    assert unpack_tally(len(head).to_bytes(4, "little") + head + packed[4 + length :]).servers == ()
