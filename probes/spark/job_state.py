"""State of a job's probe, by which the job goes on as the same instance when it is started again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from hopwatch.probes.taps.state import LockedState

Kind = TypeVar("Kind")
_NUMBERS: Final = "epoch_us", "seq", "last", "through_us", "micro_batch"


@dataclass(slots=True)
class JobProgress:
    """Instance of a job, and how far it has come.

    ``seq`` is the number of its next batch, ``last`` that of the last one, -1 before the first. This one completed the
    moment ``through_us`` and told the drops ``told``; ``drops`` are those that none has told, both by start of the
    window in ms since 1970. ``micro_batch`` is the last one of the query whose stamps were sent or counted as dropped;
    ``is_complete`` says that the query has committed none behind it.
    """

    probe: str
    epoch_us: int
    seq: int = 0
    last: int = -1
    through_us: int = 0
    query: str = ""
    micro_batch: int = -1
    is_complete: bool = False
    told: dict[int, int] = field(default_factory=dict)
    drops: dict[int, int] = field(default_factory=dict)


class JobState(LockedState):
    """Saved progress of the probe of a job at one node."""

    argument: ClassVar = "state="

    def __init__(self, path: Path, stream: str, node: str) -> None:
        """Set the state file; no file is touched yet."""
        super().__init__(path, f"the node {node} of {stream}")

    def load(self) -> JobProgress | None:
        """Return the saved progress, or None if there is none yet.

        Raises:
            TapUsageError: the file is no state of this node.
            TapSourceError: it cannot be read.
        """
        return self._read(self._parse)

    def save(self, progress: JobProgress) -> None:
        """Replace the saved progress.

        Raises:
            TapSourceError: the file cannot be written.
        """
        self._write({"node": self.source, **asdict(progress)})

    def _parse(self, kept: Mapping[str, object]) -> JobProgress:
        self._check(kept, "node", self.source)
        probe, query = (_check_kind(kept[name], str) for name in ("probe", "query"))
        epoch_us, seq, last, through_us, micro_batch = (_check_kind(kept[name], int) for name in _NUMBERS)
        is_complete = _check_kind(kept["is_complete"], bool)
        told, drops = (_parse_counts(kept[name]) for name in ("told", "drops"))
        return JobProgress(probe, epoch_us, seq, last, through_us, query, micro_batch, is_complete, told, drops)


def _parse_counts(kept: object) -> dict[int, int]:
    return {int(window_ms): _check_kind(count, int) for window_ms, count in _check_kind(kept, dict).items()}


def _check_kind(value: object, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")
    return value
