"""A Spark standalone cluster: a master and workers of one core each."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pyspark

from hopwatch.monitor.spark import archive
from hopwatch.monitor.spark.session import JAVA_OPTIONS
from servers.process import Process, answers, free_ports, until

HOME: Final = Path(pyspark.__file__).parent
_CLASS: Final = str(HOME / "bin" / "spark-class")
_DEPLOY: Final = "org.apache.spark.deploy"


class Spark:
    """A master with so many workers."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        """Choose ports; nothing runs before :meth:`start`."""
        self.folder, self.size = folder, workers
        self.port, self._page = free_ports(2)
        self._master: Process | None = None
        self._workers: list[Process] = []

    @property
    def url(self) -> str:
        """The master, as ``--master`` wants it."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start all; returns when every worker is registered."""
        self.folder.mkdir(parents=True)
        places = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self._page)]
        self._master = self._launch("master", f"{_DEPLOY}.master.Master", *places)
        until(lambda: answers(self.port), "a Spark master")
        for number in range(self.size):
            self._workers.append(self._worker(number))
        until(self._all_are_registered, "the Spark workers")

    def executors(self) -> list[int]:
        """Return the process ids of all executors."""
        processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return sorted(int(entry.name) for entry in processes if self._is_executor(entry))

    def stop(self) -> None:
        """End all and delete what they kept."""
        for process in (*self._workers, *([self._master] if self._master else [])):
            process.stop(5)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_executor(self, process: Path) -> bool:
        try:
            is_ours = process.joinpath("cwd").resolve().is_relative_to(self.folder)
            return is_ours and b"CoarseGrainedExecutorBackend" in process.joinpath("cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            return False

    def _worker(self, number: int) -> Process:
        work = self.folder / f"worker-{number}"
        flags = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
        return self._launch(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *flags, self.url)

    def _launch(self, name: str, what: str, *flags: str) -> Process:
        environ = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        environ["SPARK_DAEMON_JAVA_OPTS"] = JAVA_OPTIONS + archive.java_options()
        environ.pop("PYTHONPATH", None)
        return Process([_CLASS, what, *flags], self.folder / f"{name}.log", environ, self.folder)

    def _all_are_registered(self) -> bool:
        for worker in self._workers:
            worker.check("a Spark worker")
        said = (self.folder / "master.log").read_text("utf-8", "replace")
        return said.count("Registering worker") >= self.size
