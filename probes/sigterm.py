"""SIGTERM in a host that has no handler of its own: its probes are closed, then it ends as it would have.

By default SIGTERM ends Python at once, without ``atexit``: with each rolling deploy the last stamps would be gone.
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
"""How long a process is kept from ending; its probes give up before by themselves, unless something holds them up."""
_INIT: Final = 1
"""The process that SIGTERM does not end by default, such as the first one of a container."""
_CAUGHT: Final = "SigCgt:"


def close_at_sigterm() -> None:
    """Have all probes closed when SIGTERM comes, where nobody else handles it; a handler set later takes its place."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or os.getpid() == _INIT or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or _is_caught():
        return
    with suppress(ValueError):  # a sub-interpreter may set none
        signal.signal(signal.SIGTERM, close_and_end)


def close_and_end(number: int, _: FrameType | None = None) -> None:
    """Close all probes, and let the signal end the process; nothing to a host whose own handler calls this one."""
    if signal.getsignal(number) is not close_and_end:
        return
    # From here on another one ends the process at once.
    signal.signal(number, signal.SIG_DFL)
    try:
        # Not on this thread: it may be within a lock that closing needs, and would wait for itself.
        closing = lifecycle.ProbeThread(target=lifecycle.close_all, name="hopwatch-sigterm")
        closing.start()
        closing.join(MAX_WAIT_S)
    finally:
        os.kill(os.getpid(), number)


def _is_caught() -> bool:
    """Return whether a handler that is not Python's catches SIGTERM, as far as the system tells."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
        caught = next(line for line in status.splitlines() if line.startswith(_CAUGHT))
        return bool(int(caught.removeprefix(_CAUGHT), 16) & 1 << signal.SIGTERM - 1)
    except (OSError, ValueError, StopIteration):
        return False
