"""A process that holds a store, and the error of whoever comes second."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hopwatch.monitor.errors import StoreError

HOLD = """
import sys
from hopwatch.monitor.store import dialect
with dialect.lock_store(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_monitor(url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the store until it is ended."""
    command = [sys.executable, "-c", HOLD, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def failed(what: Callable[[], object]) -> str:
    """Return the text of the store's error that something fails with."""
    with pytest.raises(StoreError) as caught:
        what()
    return str(caught.value)
