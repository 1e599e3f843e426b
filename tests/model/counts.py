"""Nodes that only count, and what their packets show beside the ids of their neighbours: by SEMANTICS.md alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.model.books import NodeBooks
from tests.model.lag_histogram import LagHistogram, quantiles_by_count
from tests.model.pathway import Counting
from tests.model.record import Packet
from tests.model.sets import Ids
from tests.model.wire import Received

HIGHEST = 2**63 - 1
WRAP = 2**64
MOST_SERVERS = 1_000
MOST_IDS = 10


def mix(message_id: bytes) -> int:
    """Give h of an id."""
    low, high = int.from_bytes(message_id[:8], "little"), int.from_bytes(message_id[8:], "little")
    return _finalize(_finalize((low + 0x9E3779B97F4A7C15) % WRAP) ^ high)


def _finalize(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % WRAP
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % WRAP
    return x ^ x >> 31


def fingerprint(message_ids: Iterable[bytes]) -> tuple[int, int]:
    """Give the XOR and the sum of the mixes, as the wire writes them: signed."""
    both = [0, 0]
    for message_id in message_ids:
        both = [both[0] ^ mix(message_id), (both[1] + mix(message_id)) % WRAP]
    xor, total = (part - WRAP if part >= WRAP // 2 else part for part in both)
    return xor, total


@dataclass(frozen=True, slots=True)
class Counted:
    """Packets of one instance in a window, part by part; `probe` is its server."""

    probe: str
    parts: tuple[Packet, ...]

    def at(self, stamp: str) -> list[Packet]:
        """Give what it counted at a stamp."""
        return [part for part in self.parts if part.stamp == stamp]

    @property
    def others(self) -> list[Packet]:
        """Give what it counted at any stamp but IN."""
        return [part for part in self.parts if part.stamp != "IN"]

    @property
    def arrived(self) -> list[Packet]:
        """Give what it counted as IN, or as anything."""
        return self.at("IN") or self.others

    @property
    def departed(self) -> list[Packet]:
        """Give what it counted as OUT, or as IN."""
        return self.at("OUT") or self.at("IN")

    @property
    def lags_in(self) -> list[LagHistogram | None]:
        """Give the lags of what arrived, without what is deferred."""
        return [part.lags for part in self.arrived if part.stamp != "DEFERRED"]

    @property
    def lags_out(self) -> list[LagHistogram | None]:
        """Give the lags of what departed."""
        return [part.lags for part in self.departed]

    @property
    def stopped(self) -> int:
        """Give how many messages it filtered, rejected or deferred."""
        return number(part for part in self.parts if part.stamp not in {"IN", "OUT"})

    @property
    def most(self) -> int:
        """Give how many messages it counted, at most."""
        return max(number(self.at("IN")), number(self.others))


def number(parts: Iterable[Packet]) -> int:
    """Give how many were counted."""
    return sum(part.count for part in parts)


def is_same(parts: Sequence[Packet], ids: Ids) -> bool | None:
    """Say whether the fingerprint of what was counted is that of the ids; nothing where one is missing."""
    if any(part.count and not (part.id_xor or part.id_sum) for part in parts):
        return None
    return _total(parts) == (len(ids), *(part % WRAP for part in fingerprint(ids)))


def _total(parts: Iterable[Packet]) -> tuple[int, int, int]:
    """Give how many were counted, with the XOR and the sum of all."""
    count, xor, total = 0, 0, 0
    for part in parts:
        count, xor, total = count + part.count, xor ^ part.id_xor % WRAP, (total + part.id_sum) % WRAP
    return count, xor, total


def counted_of(node: str, inside: Iterable[Received]) -> list[Counted]:
    """Give what the instances of a node counted in a window, of its batches that are in it."""
    found: dict[tuple[str, int], list[Packet]] = {}
    for one in inside:
        if one.batch.node == node and one.batch.packets:
            found.setdefault((one.batch.probe, one.batch.epoch_us), []).extend(one.batch.packets)
    return [Counted(server_of(probe), tuple(parts)) for (probe, _), parts in found.items()]


def server_of(probe: str) -> str:
    """Give the name of a probe, without a hyphen and 16 hexadecimal digits at its end."""
    name, digits = probe[:-17], probe[-16:]
    is_file = name and probe[-17] == "-" and all(digit in "0123456789abcdef" for digit in digits)
    return name if is_file else probe


def silent(counted: Iterable[Counted], left_by: Mapping[str, Ids]) -> int:
    """Give how many messages left U by servers that counted nothing at N, if any of its servers did."""
    names = {one.probe for one in counted}
    return sum(len(left_by[name]) for name in left_by.keys() - names) if names & left_by.keys() else 0


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Ids beside a counting node: `left`, out(U), and those of it that are judged; `seen`, seen(T)."""

    left: Ids | None
    judged: Ids
    reached: Ids
    """Seen at T or below it."""
    seen: Ids | None
    are_complete: bool
    missing: int
    """What is missing by count at N, and the messages that may have another name at U."""
    is_confused: bool
    left_by: Mapping[str, Ids]
    """left, by the names of the probes that stamped it."""
    seen_by: Mapping[str, Ids]
    lost_in_transit: Ids
    """What is lost on the way to T."""
    shown: Callable[[bytes], str]
    """Gives an id as it is shown."""


class JudgedCounts:
    """One counting node in one window."""

    def __init__(self, node: Counting, counted: Sequence[Counted], books: NodeBooks, beside: Neighbours) -> None:
        """Take what was counted, how far that is to be believed, and what is beside it."""
        self.node, self.counted, self.books, self.beside = node, counted, books, beside
        self.arrived = [part for one in counted for part in one.arrived]
        self.departed = [part for one in counted for part in one.departed]

    @property
    def same_before(self) -> bool | None:
        """Say whether what left U is what arrived."""
        return None if self.beside.left is None else is_same(self.arrived, self.beside.left)

    @property
    def same_behind(self) -> bool | None:
        """Say whether what departed is what T saw."""
        if self.beside.seen is None or not self.node.is_alone:
            return None
        return is_same(self.departed, self.beside.seen)

    @property
    def lost_before_lower(self) -> int:
        """Give how many were surely lost between U and N."""
        if self.beside.left is None or not (self.books.complete and self.beside.are_complete):
            return 0
        if self.beside.is_confused:
            return 0
        missing = self.beside.judged - self.beside.reached
        uncounted = len(self.beside.judged) - sum(one.most for one in self.counted)
        return max(0, min(len(missing), uncounted) - self.beside.missing - silent(self.counted, self.beside.left_by))

    def is_idle(self, missing: int) -> bool:
        """Say whether it told all, and counted nothing."""
        return self.books.complete and missing == 0 == sum(one.most for one in self.counted)

    @property
    def is_whole_inside(self) -> bool:
        """Say whether nothing stayed inside, of what was counted on both sides."""
        both = [one for one in self.counted if one.at("IN") and one.others]
        came = [part for one in both for part in one.at("IN")]
        went = [part for one in both for part in one.others]
        if any(part.count and (part.stamp == "DEFERRED" or not (part.id_xor or part.id_sum)) for part in came + went):
            return False
        return _total(came) == _total(went)

    def proves_delivery(self, missing: int) -> bool:
        """Say whether nothing was lost between a node at an end of the path and the ids."""
        same = self.same_behind if self.node.before is None else self.same_before
        return self.books.complete and missing == 0 and self.is_whole_inside and same is True

    def shown(self) -> dict[str, Any]:
        """Give C of INTERFACE.md."""
        left, seen = self.beside.left, self.beside.seen
        return {
            "node": self.node.name,
            "arrived": min(HIGHEST, number(self.arrived)),
            "departed": min(HIGHEST, number(self.departed)),
            "bytes": min(HIGHEST, sum(part.bytes for part in self.arrived)),
            "dropped": self.books.dropped,
            "coverage": self.books.coverage,
            "before": self.node.before,
            "left_before": None if left is None else len(left),
            "same_before": self.same_before,
            "lost_before_lower": self.lost_before_lower,
            "behind": self.node.behind,
            "seen_behind": None if seen is None else len(seen),
            "same_behind": self.same_behind,
            "servers": self._servers(),
            "lag_in_us": quantiles_by_count(lags for one in self.counted for lags in one.lags_in),
            "lag_out_us": quantiles_by_count(lags for one in self.counted for lags in one.lags_out),
        }

    def _servers(self) -> list[dict[str, Any]]:
        """Give what was counted and stamped server by server."""
        names = {one.probe for one in self.counted}
        left, seen = (by if names & {*by} else {} for by in (self.beside.left_by, self.beside.seen_by))
        told = [self._server(name, left, seen) for name in sorted({*names, *left, *seen})]
        apart = [one for one in told if self._is_apart(one, left, seen)]
        chosen = [*apart, *(one for one in told if one not in apart)][:MOST_SERVERS]
        return [one for one in told if one in chosen]

    def _server(self, name: str, left: Mapping[str, Ids], seen: Mapping[str, Ids]) -> dict[str, Any]:
        own = [one for one in self.counted if one.probe == name]
        arrived = [part for one in own for part in one.arrived]
        departed = [part for one in own for part in one.departed]
        is_told = bool(own) and name in seen and self.node.is_alone
        missing = sorted(left[name] & self.beside.lost_in_transit) if name in left and self.node.behind else None
        return {
            "probe": name,
            "count": min(HIGHEST, number(arrived)) if own else None,
            "departed": min(HIGHEST, number(departed)) if own else None,
            "left_before": len(left[name]) if name in left else None,
            "same_before": is_same(arrived, left[name]) if own and name in left else None,
            "seen_behind": len(seen[name]) if name in seen else None,
            "same_behind": is_same(departed, seen[name]) if is_told else None,
            "missing_behind": None if missing is None else len(missing),
            "missing_ids": [self.beside.shown(one) for one in (missing or [])[:MOST_IDS]],
        }

    def _is_apart(self, one: Mapping[str, Any], left: Mapping[str, Ids], seen: Mapping[str, Ids]) -> bool:
        """Say whether what was counted differs from what was stamped, or something is missing."""
        before = (one["count"] or 0) != (one["left_before"] or 0)
        behind = (one["departed"] or 0) != (one["seen_behind"] or 0)
        is_other = False in {one["same_before"], one["same_behind"]}
        return (bool(left) and before) or (bool(seen) and behind) or bool(one["missing_behind"]) or is_other
