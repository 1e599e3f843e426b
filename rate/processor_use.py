"""Use of processors during a step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ProcessorUse(NamedTuple):
    """Use of processors by one process, 1.0 for one processor.

    ``used`` is what it had, ``waited`` what it wanted besides: its threads could run and had no processor.
    """

    used: float
    waited: float


class ProcessorShares(NamedTuple):
    """Use of processors during a step.

    ``by_name`` has the busiest process of each name; ``machine`` the part of all processors of the machine that was
    used; None if it is not known.
    """

    by_name: Mapping[str, ProcessorUse]
    machine: float | None
