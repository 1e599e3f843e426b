"""Account of a job at one node: an instance without stamps, which says up to when all is stamped.

The stamps are those of instances of their own, one for each micro-batch. This one is known before the first of them,
outlives the processes of the job by its state, and never says bye: what comes while no process runs is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.limits import MAX_DROPS
from hopwatch.probes.finished_instance import FinishedInstance, build_batch
from hopwatch.probes.spark.job_state import JobProgress, JobState
from hopwatch.probes.spark.task_stamps import MicroBatch

UNSEEN_US: Final = 86_400_000_000
"""Time before the first start of which a job knows nothing: a monitor takes no older messages by default."""
MAX_WINDOWS: Final = 10_000
"""Windows of which drops are counted separately."""
DROPPED: Final = "sink refused"
Send = Callable[[Sequence[Batch]], bool]


class JobAccount:
    """Account of a job: announced, advanced, and kept alive; each call returns whether the sink took what it sent."""

    def __init__(  # noqa: PLR0913, PLR0917 - whose account it is, and what it needs
        self, stream: str, node: str, probe: str, send: Send, state: JobState | None, clock: Clock
    ) -> None:
        """Take up the saved account, or begin one; nothing is sent yet.

        Raises:
            TapUsageError: the state is of another node.
            TapSourceError: the state cannot be read.
        """
        self.stream, self.node, self._send, self._state, self._clock = stream, node, send, state, clock
        found = state.load() if state is not None else None
        now_us = clock.wall_ns() // 1_000
        self._progress = found or JobProgress(probe, now_us - UNSEEN_US)
        self._is_announced = False
        # Whether a process before this one may have committed micro-batches that it did not note.
        self._is_in_doubt = found is not None and not found.is_complete
        self._progress.is_complete = False
        self._save()

    @property
    def query(self) -> str:
        """Return the id of the query that was noted last, "" before the first."""
        return self._progress.query

    def announce(self) -> bool:
        """Say that the job runs, before any stamp of it is sent.

        What a process before this one may have sent last is sent again, and counts once.
        """
        if not self._is_announced and self._tell_last():
            self._tell(self._progress.through_us)
        return self._is_announced

    def advance(self, through_us: int) -> bool:
        """Say that all that the sources had at a moment is stamped, and what was dropped."""
        if self._is_in_doubt:
            self.leave_hole()
            self._is_in_doubt = False
        return self.announce() and self._tell(max(self._progress.through_us, through_us))

    def keep_alive(self) -> bool:
        """Say that the job still runs; nothing more is complete."""
        return self.announce() and self._tell(self._progress.through_us)

    def note(self, micro_batch: MicroBatch, dropped: Mapping[int, int]) -> None:
        """Keep that the stamps of a micro-batch were sent, or, by window, dropped: before it is committed.

        Raises:
            TapSourceError: the state cannot be written.
        """
        progress = self._progress
        if micro_batch.number is not None:
            is_same = progress.query in {"", micro_batch.query}
            if self._is_in_doubt and not (is_same and micro_batch.number <= progress.micro_batch + 1):
                self.leave_hole()
            self._is_in_doubt = False
            progress.query, progress.micro_batch = micro_batch.query, micro_batch.number
        for window_ms, count in dropped.items():
            progress.drops[window_ms] = progress.drops.get(window_ms, 0) + count
        if len(progress.drops) > MAX_WINDOWS:
            progress.drops.clear()
            self.leave_hole()
        self._save()

    def close(self, *, is_complete: bool) -> None:
        """Keep whether the query has committed no micro-batch that was not noted; send nothing.

        Raises:
            TapSourceError: the state cannot be written.
        """
        self._progress.is_complete = is_complete and not self._is_in_doubt
        self._save()

    def leave_hole(self) -> None:
        """Leave a number out: it stands for stamps of unknown number and windows."""
        self._progress.seq += 1

    def _tell(self, through_us: int) -> bool:
        """Send the next batch; its number is used up before, so that no other batch is taken for its copy."""
        progress = self._progress
        told = dict(islice(sorted(progress.drops.items()), MAX_DROPS))
        progress.last, progress.seq = progress.seq, progress.seq + 1
        progress.through_us, progress.told = through_us, told
        progress.drops = {window_ms: count for window_ms, count in progress.drops.items() if window_ms not in told}
        # Until it is sent, it is first in line, also where it cannot be saved now.
        self._is_announced = False
        self._save()
        return self._tell_last()

    def _tell_last(self) -> bool:
        """Send the last batch that was begun; where the sink refuses it, it is first in line."""
        progress = self._progress
        if progress.last >= 0:
            instance = FinishedInstance(self.stream, self.node, progress.probe, progress.epoch_us, progress.last)
            now_us = self._clock.wall_ns() // 1_000
            drops = tuple(Drop(window_ms, count, DROPPED) for window_ms, count in sorted(progress.told.items()))
            batch = build_batch(instance, BatchKind.HEARTBEAT, progress.through_us, now_us)
            self._is_announced = self._send([replace(batch, drops=drops)])
            return self._is_announced
        return True

    def _save(self) -> None:
        if self._state is not None:
            self._state.save(self._progress)
