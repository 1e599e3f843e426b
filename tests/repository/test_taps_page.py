"""Tests of the page on taps: it names every flag, every reason and every status, and its examples are the program's."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import Final

import pytest
import typer
from packaging.requirements import Requirement

from hopwatch.cli import tap
from hopwatch.cli.main import main
from hopwatch.probes.taps.http import app
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit
from tests.repository import ROOT
from tests.repository.project import EMBEDDED, PROJECT

PAGE: Final = (ROOT / "docs" / "TAPS.md").read_text("utf-8")
INTERFACE: Final = (ROOT / "docs" / "INTERFACE.md").read_text("utf-8")
FLAGS: Final = {
    (name, flag)
    for name, command in typer.main.get_command(tap.command).commands.items()  # type: ignore[attr-defined]  # a group
    for parameter in command.params
    for flag in parameter.opts
    if flag.startswith("--")
}
NEEDS: Final = """
from hopwatch.cli.main import main
assert main(["tap", "jsonl", "--help"]) == 0
from hopwatch.probes.taps import kafka
from hopwatch.probes.http import granian_server
"""


@pytest.mark.parametrize(("command", "flag"), sorted(FLAGS))
def test_every_flag_is_listed(command: str, flag: str) -> None:
    """In the row of its command, or in that of all."""
    rows = [line for line in INTERFACE.splitlines() if line.startswith((f"| `tap {command}", "| all |"))]
    assert any(f"`{flag}" in row for row in rows)


def test_every_reason_and_every_kind_is_told() -> None:
    """Of what cannot be read, of ids, and of times."""
    assert [
        one for one in (*SkipReason, *IdFormat, *TimeUnit) if f"`{one}`" not in PAGE and f" {one}`" not in PAGE
    ] == []


def test_every_status_is_told() -> None:
    """And no other."""
    assert {int(status) for status in re.findall(r"^\| (4\d\d|5\d\d) \|", PAGE, re.MULTILINE)} == set(app._DESCRIPTIONS)


def test_every_flag_on_the_page_is_one() -> None:
    """A reader who copies a command gets no error of usage."""
    flags = {flag for _, flag in FLAGS} | {"--help"}
    assert [flag for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE) if flag not in flags] == []


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_examples_are_python(example: str) -> None:
    """Examples import only what exists."""
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.ImportFrom):
            __import__(str(node.module), fromlist=[name.name for name in node.names])


def test_the_example_by_standard_input_runs(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command as the page has it is understood, up to what it reads."""
    folder = tmp_path_factory.mktemp("page")
    (command,) = re.findall(r"\| hopwatch (tap jsonl - .*?)\n```", PAGE.replace(" \\\n    ", " "))
    arguments = command.replace("spool:./var/spool", f"spool:{folder}").replace("__REALTIME_TIMESTAMP", "..").split()
    assert main(arguments) == 2
    assert "a path is 1 to 16 keys with dots between" in capsys.readouterr().err


def test_the_taps_need_their_extras_only() -> None:
    """A sidecar is installed without Spark, and without the store."""
    extras = PROJECT["project"]["optional-dependencies"]
    needed = {Requirement(one).name for extra in ("taps", "kafka") for one in extras[extra]}
    others = {Requirement(one).name for extra in ("monitor", "demo", "dev") for one in extras[extra]} - needed
    # Their own import names; what FastAPI and rich bring along is theirs to choose.
    script = EMBEDDED.format(others={name.lower().replace("-", "_") for name in others} - {"httpx"}) + NEEDS
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
