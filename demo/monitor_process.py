"""The monitor beside the pipeline: ``hopwatch run`` as a process of its own, and what is read of its store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from hopwatch.demo.layout import Layout
from hopwatch.demo.measurements import Json, Measurements
from hopwatch.demo.processes import PACKAGES, read_last_line
from hopwatch.demo.stream import NODES, STREAM
from hopwatch.monitor.errors import HopwatchError
from hopwatch.monitor.store import dialect, reader, schema

STOP_WITHIN_S: Final = 60.0


class MonitorDiedError(HopwatchError):
    """The monitor ended without a stop request; its exit code becomes that of the demo."""

    def __init__(self, message: str, exit_code: int) -> None:
        """Take the monitor's own exit code where it tells of a reason, else that of a fault of ours."""
        super().__init__(message)
        self.exit_code = exit_code if exit_code in (2, 3) else HopwatchError.exit_code  # type: ignore[misc]


class MonitorProcess:
    """``hopwatch run`` over the files of one run. A context: it does not outlive it."""

    def __init__(self, layout: Layout) -> None:
        """Take the files of the run; nothing is started yet."""
        self._log = layout.log("monitor")
        self._command = [sys.executable, "-m", "hopwatch", "run"]
        self._command += ["--config", str(layout.config), "--workdir", str(layout.checkpoints)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the monitor; what it prints goes to its log."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=PACKAGES, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the monitor if it still runs."""
        self.stop()

    def check(self) -> None:
        """Do nothing while the monitor runs.

        Raises:
            MonitorDiedError: it has ended.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            words = read_last_line(self._log)
            raise MonitorDiedError(f"the monitor ended by itself with exit code {code}; {words} ({self._log})", code)

    def stop(self) -> None:
        """End the monitor by SIGTERM, and by SIGKILL if that does not help."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class StoredResults:
    """Results that the monitor has written so far."""

    def __init__(self, store_url: str, nodes: Sequence[str] = NODES) -> None:
        """Take the store's address, which need not be there yet, and the nodes of the stream."""
        self._nodes = nodes
        self._url = store_url
        self.engine = dialect.create_engine(store_url)

    def report(self) -> Json | None:
        """Return the object of ``hopwatch report --json``, or ``None`` before the monitor has made its tables."""
        if not schema.has_store(self._url):
            return None
        return reader.read_report(self.engine, STREAM)

    def measured(self) -> Measurements | None:
        """Return all that ``compare`` wants to know of the store."""
        report = self.report()
        return (
            None
            if report is None
            else Measurements(report, lambda node: reader.read_lost_ids(self.engine, STREAM, node), self._nodes)
        )
