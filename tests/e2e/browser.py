"""A real Chromium, and the dashboard that it looks at."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SEEN_WITHIN_MS: Final = 30_000
REFRESH_MS: Final = 7_000
"""Longer than it takes a page to be drawn anew by itself."""
STARTS_WITHIN_S: Final = 60.0
ENDS_WITHIN_S: Final = 20.0


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the Chromium of this machine."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("there is no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def dashboard(config: Path, port: int | None = None, *flags: str) -> Iterator[str]:
    """Yield the URL of ``hopwatch dashboard`` over a configuration; Ctrl-C ends it, and it ends well."""
    port = port or free_port()
    base = [sys.executable, "-m", "monitor.cli.main", "dashboard", "--config", str(config), "--port", str(port)]
    with subprocess.Popen([*base, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            _await(port, process)
            yield f"http://127.0.0.1:{port}/"
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=ENDS_WITHIN_S)
            assert (process.returncode, "Traceback" in told) == (0, False), told
        finally:
            process.kill()


def _await(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    process.kill()
    pytest.fail(f"the dashboard did not start: {process.communicate()[0]}")
