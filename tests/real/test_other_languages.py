"""Services in Go and TypeScript that post what they saw, as TAPS.md shows it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from hopwatch.probes.contract.ids import id_bytes
from servers.process import PATIENCE_S, answers, free_ports, installed, until
from tests.repository import ROOT
from tests.support.probe_host import rows, spooled
from tests.support.program import ProgramProcess

PAGE: Final = (ROOT / "docs" / "TAPS.md").read_text("utf-8")
PORT: Final = "8099"
"""Port that the page names."""
ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[str]:
    """Yield the port of a tap."""
    (port,) = free_ports(1)
    command = ["hopwatch", "tap", "http", "--port", str(port), "--sink", f"spool:{tmp_path / 'spool'}"]
    process = ProgramProcess(command, tmp_path / "said")
    try:
        until(lambda: answers(port) or not process.is_alive, "the tap answers")
        process.check("the tap")
        yield str(port)
        process.stop()
    finally:
        process.kill()


def write_program(folder: Path, language: str, port: str) -> tuple[Path, str]:
    """Write the program of the page that is in a language, for a tap at another port; return it and its message id."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    path = folder / ("probe.go" if language == "go" else "probe.ts")
    path.write_text(found[1].replace(PORT, port))
    return path, ID.findall(found[1])[0]


def run(*command: object, folder: Path) -> None:
    """Run a command in a folder; it prints nothing and ends well."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def stamped(folder: Path) -> list[tuple[str, str, bytes]]:
    """Return what is in the spool: stream, node and id of each message."""
    batches = [batch for of_sender in spooled(folder / "spool").values() for batch in of_sender]
    return [(batch.stream, batch.node, row.message_id) for batch in batches for row in rows([batch])]


def test_a_service_in_go_is_stamped(tmp_path: Path, tap: str) -> None:
    """By the standard library alone."""
    program, message_id = write_program(tmp_path, "go", tap)
    run(installed("go", "golang-go"), "run", program, folder=tmp_path)
    until(lambda: bool(stamped(tmp_path)), "the stamp")
    assert stamped(tmp_path) == [("orders", "router", id_bytes(UUID(message_id)))]


def test_a_service_in_typescript_is_stamped(tmp_path: Path, tap: str) -> None:
    """By what every runtime has."""
    program, message_id = write_program(tmp_path, "typescript", tap)
    flags = ("--target", "es2020", "--lib", "es2020,dom", "--strict")
    run(installed("tsc", "node-typescript"), *flags, program, folder=tmp_path)
    run(installed("node", "nodejs"), program.with_suffix(".js"), folder=tmp_path)
    until(lambda: bool(stamped(tmp_path)), "the stamp")
    assert stamped(tmp_path) == [("orders", "router", id_bytes(UUID(message_id)))]
