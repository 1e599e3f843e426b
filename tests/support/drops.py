"""Drops that records report, for tests of probes."""

from __future__ import annotations

from collections.abc import Iterable

from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.envelope import decode


def drops(records: Iterable[bytes]) -> list[Drop]:
    """Return all drops that some records tell, in their order."""
    return [drop for record in records for drop in decode(record).drops]
