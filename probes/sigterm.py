"""SIGTERM handler for hosts without their own: close all probes, then let the signal end the process.

By default SIGTERM ends Python at once, without ``atexit``: each rolling deploy would lose the last stamps.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from hopwatch.probes import lifecycle

MAX_WAIT_S: Final = 4.0
"""Maximum delay of the end of a process; its probes usually give up earlier by themselves."""
_INIT: Final = 1
"""Process id of init, such as the first process of a container, which SIGTERM does not end by default."""
_CAUGHT: Final = "SigCgt:"


def close_at_sigterm() -> None:
    """Install the handler, unless another one handles SIGTERM; a handler set later replaces it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or os.getpid() == _INIT or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or _is_caught():
        return
    with suppress(ValueError):  # a sub-interpreter may set none
        signal.signal(signal.SIGTERM, close_and_end)


def close_and_end(number: int, _: FrameType | None = None) -> None:
    """Close all probes, and let the signal end the process; do nothing if the host's own handler calls this one."""
    if signal.getsignal(number) is not close_and_end:
        return
    # From here on another signal ends the process at once.
    signal.signal(number, signal.SIG_DFL)
    try:
        # Not on this thread: it may hold a lock that closing needs.
        closing = lifecycle.ProbeThread(target=lifecycle.close_all, name="hopwatch-sigterm")
        closing.start()
        closing.join(MAX_WAIT_S)
    finally:
        os.kill(os.getpid(), number)


def _is_caught() -> bool:
    """Return whether a handler outside Python catches SIGTERM, as far as ``/proc`` shows it."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
        caught = next(line for line in status.splitlines() if line.startswith(_CAUGHT))
        return bool(int(caught.removeprefix(_CAUGHT), 16) & 1 << signal.SIGTERM - 1)
    except (OSError, ValueError, StopIteration):
        return False
