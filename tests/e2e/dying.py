"""``hopwatch`` that dies with all its processes right after the store has committed a batch, before Spark notes it."""

from __future__ import annotations

import os
import signal

from monitor.cli.main import main
from monitor.spark import job


def _die(paths: list[str]) -> None:  # noqa: ARG001 - it stands for a function with that argument
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    # What the sink does last: the store's transaction is over, and Spark hears of it when this returns.
    job._delete = _die
    main()
