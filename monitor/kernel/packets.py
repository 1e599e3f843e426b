"""Packets: counts of messages that add up in any order, and the fingerprint by which two sets are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hopwatch.probes.contract.fingerprints import Fingerprint


class Packet(NamedTuple):
    """Messages that were counted: how many, their fingerprint (XOR and wrapping sum), and their bytes.

    ``printed`` of them are in the fingerprint: it stands for all only if that is ``count``.
    """

    count: int = 0  # type: ignore[assignment]  # the wire's name, which a tuple has for a method
    id_xor: int = 0
    id_sum: int = 0
    bytes: int = 0
    printed: int = 0

    @classmethod
    def from_wire(cls, count: int, id_xor: int, id_sum: int, size_bytes: int) -> Packet:
        """Return what one packet says of one stamp."""
        is_printed = bool(id_xor or id_sum)
        return cls(count, *Fingerprint.from_signed(id_xor, id_sum), size_bytes, count if is_printed else 0)

    def plus(self, other: Packet) -> Packet:
        """Return both, whichever came first."""
        id_xor, id_sum = Fingerprint(self.id_xor, self.id_sum).plus(Fingerprint(other.id_xor, other.id_sum))
        return Packet(self.count + other.count, id_xor, id_sum, self.bytes + other.bytes, self.printed + other.printed)

    def matches(self, ids: Packet) -> bool | None:
        """Return whether these are the messages ``ids``; None where no fingerprint says."""
        if self.printed != self.count or ids.printed != ids.count:
            return None
        return self[:3] == ids[:3]


def add_packets(packets: Iterable[Packet]) -> Packet:
    """Return all packets as one, in whatever order they come."""
    total = Packet()
    for packet in packets:
        total = total.plus(packet)
    return total
