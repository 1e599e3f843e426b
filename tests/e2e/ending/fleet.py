"""The program that runs the pipelines of many cases, some at a time: each process is a fork of this one."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Final

from tests.e2e.ending import slow_exit
from tests.e2e.ending.cases import NODES, Case, End
from tests.e2e.ending.process import Place, Process

AT_ONCE: Final = 20


def main(folder: Path, wanted: list[tuple[str, str, float]]) -> None:
    """Run the cases, each in a folder of its own, named as it is."""
    cases = [Case(End(end), node, moment_s) for end, node, moment_s in wanted]
    for first in range(0, len(cases), AT_ONCE):
        children = [child for case in cases[first : first + AT_ONCE] for child in _started(folder / case.name, case)]
        for child in children:
            os.waitpid(child, 0)


def _started(folder: Path, case: Case) -> list[int]:
    """Start the processes of a pipeline: two of the case's node, one of each other."""
    folder.mkdir(parents=True)
    pipes = [os.pipe() for _ in NODES[1:]]
    for reading_end, _ in pipes:
        os.set_blocking(reading_end, False)
    sources: list[int | None] = [None, *(source for source, _ in pipes)]
    outlets: list[int | None] = [*(outlet for _, outlet in pipes), None]
    start_s, children = time.monotonic(), []
    for node, source, outlet in zip(NODES, sources, outlets, strict=True):
        replicas = 2 if node == case.node else 1
        for replica in range(replicas):
            child = os.fork()
            if not child:
                place = Place(folder, case, node, replica, replicas, source, outlet, start_s)
                if place.end is End.DAEMON:
                    slow_exit.linger()
                Process(place).live()
            children.append(child)
    for pipe in pipes:
        for end in pipe:
            os.close(end)
    return children


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
