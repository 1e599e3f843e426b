"""Parts of a scenario, and the seeded random choices that it is made with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


class Fault(StrEnum):
    """Fault or unusual event of a scenario."""

    LOST = auto()
    """Messages are lost in transit, inside nodes and after branches."""
    STOPPED = auto()
    """Messages are filtered or rejected, with and without stamps."""
    STOPPED_BY_COUNT = auto()
    """Nodes that only count stop messages, too: nobody knows which."""
    DEFERRED = auto()
    """Nodes keep messages for a later try: then these are delivered, rejected, kept again, or never heard of."""
    REPEATED = auto()
    """A node handles a message twice."""
    TWO_WAYS = auto()
    """A message takes two ways of a one-of group."""
    UNOBSERVED = auto()
    """A probe misses a message or one of its stamps and knows nothing of it."""
    LATE_EVENTS = auto()
    """Messages are sent minutes to an hour after their event time."""
    LYING_EVENTS = auto()
    """Event times of 1970 and 2099, a few minutes ahead, or another one at some hop."""
    GAPS = auto()
    """Minutes without a message; with luck without a probe."""
    RESTARTS = auto()
    """Probe instances end, with a bye or without, and others follow."""
    DEAD = auto()
    """An instance ends long before the others, without a bye."""
    YOUNG = auto()
    """A replica starts when it likes and dies within three seconds, unheard but for its hello."""
    UNANNOUNCED = auto()
    """Probes of an older version, which say no hello."""
    UNREADABLE = auto()
    """Some or all segments of an instance are damaged, emptied, or of a version that nobody knows."""
    MISNAMED = auto()
    """An instance calls its node by a name that is not declared."""
    MISTIMED = auto()
    """An instance tells event times in ms, as if they were µs."""
    CROSSED = auto()
    """An instance sends counts from a node with ids, or ids from a node that counts."""
    UNPRINTED = auto()
    """Instances count without a fingerprint."""
    RETYPED = auto()
    """An instance calls messages by ids of another type."""
    SKEW = auto()
    """Probe clocks are off by seconds, an hour, or 70 years."""
    DROPS = auto()
    """Probes drop observations and say so."""
    SPLIT = auto()
    """The two stamps of a message are told apart."""
    HOLES = auto()
    """Batches never come."""
    COPIES = auto()
    """Records come again, the same bytes, later or at once."""
    TWINS = auto()
    """A number comes again with other observations."""
    REORDERED = auto()
    """Batches come in another order, over segments."""
    TOO_LATE = auto()
    """Segments come when their windows can no longer be amended."""
    ANCIENT = auto()
    """Segments come when their windows are older than `max_age`."""
    EDGES = auto()
    """Moments lie exactly on, and 1 µs beside, where a rule changes its mind."""
    POISON = auto()
    """Broken records and files, of every kind."""
    AWKWARD = auto()
    """Unusual but lawful names of directories and probes, and unusual but lawful Avro."""


LYING = frozenset({Fault.UNOBSERVED, Fault.LYING_EVENTS, Fault.ANCIENT, Fault.EDGES, Fault.TWINS, Fault.UNANNOUNCED})
"""With these a probe's account says more than it holds, so that no monitor can keep the promise of no false loss."""

GRIDS_US = (1, 1000, SECOND_US, 10 * SECOND_US, 30 * SECOND_US)


@dataclass(frozen=True, slots=True)
class Dials:
    """A scenario before it is thrown: equal dials make equal directories."""

    seed: int
    messages: int = 30
    windows: int = 2
    grid_us: int = 1
    """All moments are multiples of it: a coarse one makes many of them equal."""
    faults: frozenset[Fault] = frozenset()

    @classmethod
    def of_seed(cls, seed: int) -> "Dials":
        """Throw the dials themselves."""
        rng = Random(seed)
        share = rng.choice((0.05, 0.1, 0.25, 0.5))
        usual = {Fault.LOST: 0.8, Fault.STOPPED: 0.5}
        return cls(
            seed=seed,
            messages=rng.choice((0, 1, 5, 20, 60, 60, 150)),
            windows=rng.randint(1, 5),
            grid_us=rng.choice(GRIDS_US),
            faults=frozenset(fault for fault in Fault if rng.random() < usual.get(fault, share)),
        )


RENAMED_WAITS = frozenset({Fault.LOST, Fault.DEFERRED, Fault.RETYPED, Fault.REPEATED})
"""Faults that only together show whether what one instance keeps, another one may handle by another name."""


def fault_sets(
    without: frozenset[Fault] = frozenset(), max_size: int | None = None
) -> st.SearchStrategy[frozenset[Fault]]:
    """Give a strategy of sets of faults; every other one has those that only together show something."""
    drawn = st.frozensets(st.sampled_from([fault for fault in Fault if fault not in without]), max_size=max_size)
    return drawn if without & RENAMED_WAITS else drawn | drawn.map(RENAMED_WAITS.union)


def dials(*, without: frozenset[Fault] = frozenset(), grids_us: Sequence[int] = GRIDS_US) -> st.SearchStrategy[Dials]:
    """Give a strategy of dials; a failure shrinks to the fewest messages, windows and faults."""
    return st.builds(
        Dials,
        seed=st.integers(0, 2**32 - 1),
        messages=st.integers(0, 60),
        windows=st.integers(1, 4),
        grid_us=st.sampled_from(grids_us),
        faults=fault_sets(without),
    )


@dataclass(slots=True)
class Dice:
    """Chance, with the dials of the scenario at hand."""

    dials: Dials
    rng: Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed the chance."""
        self.rng = Random(self.dials.seed)

    def hit(self, fault: Fault, share: float) -> bool:
        """Say whether a fault strikes; never unless it is switched on."""
        return fault in self.dials.faults and self.rng.random() < share

    def moment(self, low_us: float, high_us: float) -> int:
        """Give a moment or a duration between the two, on the grid."""
        return self.on_grid(self.rng.uniform(low_us, high_us))

    def on_grid(self, moment_us: float) -> int:
        """Give the last multiple of the grid that is not above."""
        return int(moment_us) // self.dials.grid_us * self.dials.grid_us

    def one(self, choices: Sequence[T]) -> T:
        """Give one of the choices."""
        return self.rng.choice(choices)
