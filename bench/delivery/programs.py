"""Programs that deliver a topic to a receiver, and the receiver, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import orjson

from bench.contestant import ContestantError
from bench.delivery import plain_loop, receiver
from bench.delivery.receiver import HOST, Counts
from servers.kafka import Kafka
from servers.process import Process, free_ports, until

HOPWATCH, PLAIN, FASTSTREAM = "hopwatch", "plain", "faststream"
KINDS: Final = (HOPWATCH, PLAIN, FASTSTREAM)
STREAM: Final = "orders"
TOPIC: Final = "orders"
NAME: Final = "bench"
WEAK: Final = ("--replication", "1", "--min-insync", "1", "--allow-weak")
STARTS_WITHIN_S: Final = 60.0
STOP_S: Final = 30.0
_FASTSTREAM_PROGRAM: Final = Path(__file__).with_name("faststream_app.py")


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of a run: events of a request, requests under way, and time from a request to its answer."""

    kind: str
    batch: int
    parallel: int
    wait_s: float


class CountingReceiver:
    """Receiver that waits before each answer; ``messages`` are the numbers that it knows."""

    def __init__(self, folder: Path, wait_s: float, messages: int) -> None:
        """Start it; it answers when this returns."""
        (self._port,) = free_ports(1)
        command = (sys.executable, receiver.__file__, str(self._port), str(wait_s), str(messages))
        self._process = Process(command, folder / "receiver.log")
        until(self._is_up, "the receiver", STARTS_WITHIN_S)

    @property
    def url(self) -> str:
        """URL that is posted to."""
        return f"http://{HOST}:{self._port}/events"

    def read_counts(self) -> Counts:
        """Return what has come so far."""
        with urlopen(self.url, timeout=STARTS_WITHIN_S) as answer:  # noqa: S310 - our own, by HTTP
            return Counts(**orjson.loads(answer.read()))

    def stop(self) -> None:
        """End it."""
        self._process.stop()

    def _is_up(self) -> bool:
        self._process.check("the receiver")
        with suppress(OSError):
            self.read_counts()
            return True
        return False


def write_configuration(folder: Path, broker: Kafka, url: str, group: str, terms: Terms) -> Path:
    """Write the configuration of a delivery; its stamps go to a spool, which nobody reads."""
    file = folder / "hopwatch.toml"
    file.write_text(
        f'[transport]\nurl = "spool:{folder / "spool"}"\n[store]\nurl = "sqlite:///{folder / "hopwatch.db"}"\n'
        f'[streams.{STREAM}]\npath = "gate -> deliver"\namend_for = "3h"\n'
        f'[deliver.{NAME}]\nstream = "{STREAM}"\nfrom = "{broker.url(TOPIC)}"\nurl = "{url}"\ngroup = "{group}"\n'
        f"from_start = true\nbatch = {terms.batch}\nparallel = {terms.parallel}\n",
        "utf-8",
    )
    return file


def create_topics(folder: Path, broker: Kafka) -> None:
    """Create the topics that a delivery needs beside its source.

    Raises:
        ContestantError: it fails.
    """
    file = write_configuration(folder, broker, f"http://{HOST}:1/", "none", Terms(HOPWATCH, 1, 1, 0.0))
    command = [sys.executable, "-m", "hopwatch", "deliver", "create-topics", "--config", str(file), *WEAK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise ContestantError(f"topics of a delivery were not made: {done.stderr[-2_000:]}")


def start_program(folder: Path, broker: Kafka, url: str, group: str, terms: Terms) -> Process:
    """Start a program as the only one of a new group, which begins at the topic's start."""
    told = (broker.bootstrap, TOPIC, group, url, str(terms.batch))
    if terms.kind == HOPWATCH:
        file = write_configuration(folder, broker, url, group, terms)
        command = (sys.executable, "-m", "hopwatch", "deliver", "--config", str(file), "--allow-weak")
    elif terms.kind == PLAIN:
        command = (sys.executable, plain_loop.__file__, *told)
    else:
        command = (sys.executable, str(_FASTSTREAM_PROGRAM), *told)
    return Process(command, folder / "program.log")
