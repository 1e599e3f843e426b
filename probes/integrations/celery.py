"""Integration with Celery: tasks are stamped as they are published, as a worker begins them, and as they end.

One line beside the app, in the module that publishers and workers share::

    app = Celery("shop", broker="redis://localhost")
    instrument(stream="tasks", publisher="shop", worker="worker", sink="spool:./var/spool")

The id of a message is that of its task, the event time the moment at which it was published first, which travels in a
header of the task. The publisher stamps ``out`` once the broker has the task. A worker stamps ``in`` as a task begins,
``out`` when it has succeeded, and a rejection with the name of the exception when it has failed. A task that is tried
again or has an ETA waits, and is no loss until it is overdue. What Celery publishes for itself is not stamped.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from celery import signals, states

from hopwatch.probes import Probe, message_headers
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.integrations.message_marker import BAD_MARKS, UNMARKED
from hopwatch.probes.message_headers import TIME_HEADER
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.sinks import Sink, SinkOpener

WAIT_S: Final = 600.0
"""Default time within which a task runs once its ETA has come."""
OWN_TASKS: Final = "celery."
"""Beginning of the names of tasks that Celery publishes for itself."""
_log = logging.getLogger("hopwatch.probe")


def instrument(  # noqa: PLR0913 - what can be chosen, all of it by name
    *,
    stream: str,
    publisher: str,
    worker: str,
    sink: str | Sink | SinkOpener | None = None,
    wait_s: float = WAIT_S,
    ignore_unmarked: bool = False,
    clock: Clock | None = None,
) -> TaskStamper:
    """Stamp the tasks of this process: those that it publishes, and, if it is a worker, those that it runs.

    Args:
        stream: the stream that the tasks belong to.
        publisher: the node that publishes them.
        worker: the node that runs them.
        sink: the sink of the stamps; by default that of ``HOPWATCH_SINK``.
        wait_s: the time within which a task runs once its ETA has come; after that it counts as lost.
        ignore_unmarked: whether to ignore tasks of publishers that are not instrumented. By default they count as
            dropped, so that the monitor reports no loss of them.
        clock: a clock, for tests.
    """
    stamper = TaskStamper(stream, (publisher, worker), sink, wait_s=wait_s, ignores=ignore_unmarked, clock=clock)
    stamper.connect()
    return stamper


class TaskStamper:
    """Stamper of the tasks of a process, called by Celery's signals; none of its methods raises."""

    def __init__(  # noqa: PLR0913 - what instrument() passes on
        self,
        stream: str,
        nodes: tuple[str, str],
        sink: str | Sink | SinkOpener | None,
        *,
        wait_s: float,
        ignores: bool,
        clock: Clock | None,
    ) -> None:
        """Set the nodes, publisher and worker; no probe starts before it is needed.

        A process that only publishes has no instance at the worker's node: it would say there that all is well, with no
        worker alive.
        """
        self._stream, self._sink = stream, sink
        self._publisher, self._worker = nodes
        self._wait_us, self._ignores, self._clock = int(wait_s * 1e6), ignores, clock or SystemClock()
        self._probes: dict[str, Probe] = {}
        self._logged = OncePerCause()

    def connect(self) -> None:
        """Have Celery call this stamper, for as long as it lives."""
        calls: dict[Any, Callable[..., None]] = {
            signals.before_task_publish: self.mark,
            signals.after_task_publish: self.stamp_published,
            signals.worker_init: self.start_worker,
            signals.task_received: self.stamp_received,
            signals.task_prerun: self.stamp_begun,
            signals.task_postrun: self.stamp_ended,
            signals.task_revoked: self.stamp_revoked,
            signals.worker_process_shutdown: self.close,
            signals.worker_shutdown: self.close,
        }
        for signal, call in calls.items():
            signal.connect(self._guard(call), weak=False)

    def mark(self, sender: str = "", headers: Any = None, **_: object) -> None:  # noqa: ANN401 - as Celery has it
        """Add the event time to the headers of a task that is published; a task that is tried again has its own."""
        if not sender.startswith(OWN_TASKS) and isinstance(headers, dict) and TIME_HEADER not in headers:
            self._find_probe(self._publisher)  # it is announced before the first stamp
            headers[TIME_HEADER] = str(self._clock.wall_ns() // 1_000)

    def stamp_published(self, sender: str = "", headers: Any = None, **_: object) -> None:  # noqa: ANN401 - as above
        """Stamp ``out`` of a task that the broker has; the first time only, if it is tried several times."""
        if not sender.startswith(OWN_TASKS) and isinstance(headers, dict) and not headers.get("retries"):
            self._find_probe(self._publisher).departed(*_parse_identity(headers))

    def start_worker(self, **_: object) -> None:
        """Announce the worker; processes of its pool start instances of their own."""
        self._find_probe(self._worker)

    def stamp_received(self, request: Any = None, **_: object) -> None:  # noqa: ANN401 - as above
        """Stamp a task that waits for its ETA in a worker."""
        if request is None or request.eta is None or request.name.startswith(OWN_TASKS):
            return
        self._defer(request.request_dict, request.eta, "eta")

    def stamp_begun(self, task: Any = None, **_: object) -> None:  # noqa: ANN401 - as above
        """Stamp ``in`` of a task that begins, unless it has waited for that."""
        request = self._read_request(task)
        if request is None or request.get("retries") or request.get("eta"):
            return
        if self._check_mark(request):
            self._find_probe(self._worker).arrived(*_parse_identity(request))

    def stamp_ended(self, task: Any = None, state: str = "", retval: Any = None, **_: object) -> None:  # noqa: ANN401 - as above
        """Stamp the end of a task: that it has left, was refused, or waits for another try."""
        request = self._read_request(task)
        if request is None or request.get(TIME_HEADER) is None:
            return
        if state == states.RETRY:
            self._defer(request, retval.when, "retry")
            return
        probe, identity = self._find_probe(self._worker), _parse_identity(request)
        if state in {states.FAILURE, states.REJECTED}:
            probe.rejected(*identity, type(retval).__name__, has_arrived=True)
        else:
            probe.departed(*identity)

    def stamp_revoked(
        self,
        request: Any = None,  # noqa: ANN401 - as above
        terminated: bool = False,  # noqa: FBT001, FBT002 - as above
        expired: bool = False,  # noqa: FBT001, FBT002 - as above
        **_: object,
    ) -> None:
        """Stamp a task that does not run, as it has expired or was revoked, or whose run was ended."""
        told: Any = getattr(request, "request_dict", request)
        if told.get(TIME_HEADER) is None:
            return
        self._find_probe(self._worker).rejected(
            *_parse_identity(told),
            "expired" if expired else "revoked",
            has_arrived=bool(terminated or told.get("eta") or told.get("retries")),
        )

    def close(self, **_: object) -> None:
        """Send what is left, and say that this process has ended; publishers do it at their exit."""
        while self._probes:
            self._probes.popitem()[1].close()

    def _defer(self, request: Any, moment: object, reason: str) -> None:  # noqa: ANN401 - as above
        """Stamp a task that waits for a moment, or for so many seconds."""
        now = datetime.fromtimestamp(self._clock.wall_ns() / 1e9, UTC)
        if isinstance(moment, int | float):
            moment = now + timedelta(seconds=moment)
        if not isinstance(moment, datetime):
            moment = now
        if self._check_mark(request):
            until_us = int(moment.astimezone(UTC).timestamp() * 1e6) + self._wait_us
            self._find_probe(self._worker).deferred(*_parse_identity(request), until_us, reason)

    @staticmethod
    def _read_request(task: Any) -> Any:  # noqa: ANN401 - as above
        """Return the request of a task that came by a broker; None of others."""
        if task is None or task.name.startswith(OWN_TASKS):
            return None
        request = task.request
        return None if request.is_eager or request.called_directly else request

    def _check_mark(self, request: Any) -> bool:  # noqa: ANN401 - as above
        """Return whether a task has an event time; count one that has none."""
        is_marked = request.get(TIME_HEADER) is not None
        if not is_marked and not self._ignores:
            self._find_probe(self._worker).missed(UNMARKED)
            if self._logged.is_new(UNMARKED):
                _log.warning("a task came without %s: is its publisher instrumented?", TIME_HEADER)
        return is_marked

    def _find_probe(self, node: str) -> Probe:
        """Return the probe of a node, started if need be."""
        found = self._probes.get(node)
        if found is not None:
            return found
        # Without a lock, which another thread might hold when a worker forks.
        started = Probe(self._stream, node, self._sink, clock=self._clock)
        kept = self._probes.setdefault(node, started)
        if kept is not started:
            started.end()
        return kept

    def _guard(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a receiver of a signal that counts what cannot be stamped, and does not raise into its host."""

        def receive(**said: object) -> None:
            try:
                call(**said)
            except Exception:  # noqa: BLE001 - a probe does not raise into its host
                for probe in list(self._probes.values()):
                    probe.missed(BAD_MARKS)
                if self._logged.is_new("failed"):
                    _log.warning("a task is not stamped", exc_info=True)

        return receive


def _parse_identity(told: Any) -> tuple[uuid.UUID | str, int]:  # noqa: ANN401 - headers or a request
    """Return the id of a task, a UUID unless a team gives its own, and its event time in µs since 1970.

    Raises:
        ValueError: there is none.
    """
    task_id = told.get("id")
    if not isinstance(task_id, str):
        raise ValueError(f"a task has an id, got {task_id!r:.60}")  # noqa: TRY004 - one error for what cannot be read
    event_us = message_headers.read_time(told.get(TIME_HEADER))
    try:
        return uuid.UUID(task_id), event_us
    except ValueError:
        return task_id, event_us
