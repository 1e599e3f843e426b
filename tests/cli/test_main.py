"""Tests of the program as a whole: its help, its exit codes, and what it says when something ends a command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
import typer

from hopwatch.cli import commands
from hopwatch.cli.main import main
from hopwatch.monitor.errors import ConfigurationError, DependencyError, StoreError


@pytest.fixture
def ended_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """Return a function that runs a command which raises, and returns the exit code."""

    def run(error: BaseException) -> int:
        def command() -> None:
            raise error

        monkeypatch.setitem(sys.modules, "hopwatch.cli.report", SimpleNamespace(command=command))
        return main(["report"])

    return run


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """All commands with a whole line each, and nothing on stderr."""
    assert main(["--help"]) == 0
    told = capsys.readouterr()
    for name, summary in commands.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", told.out, re.MULTILINE)
    assert told.err == ""


def test_the_help_imports_nothing_heavy() -> None:
    """Spark, the store, arrays and settings stay out, so that help and completion are quick."""
    heavy = {"pyspark", "pandas", "pyarrow", "numpy", "sqlalchemy", "pydantic", "fastavro", "probes"}
    script = "import sys; from hopwatch.cli.main import main; main(['--help']); print('imported', *sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert heavy.isdisjoint(out.partition("imported")[2].split())


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_is_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each name of the list has its file, and a help of its own with a whole sentence."""
    assert callable(import_module(f"hopwatch.cli.{commands.MODULES.get(name, name)}").command)
    assert main([name, "--help"]) == 0
    assert f"hopwatch {name}" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is the distribution's."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "hopwatch 0.1.0\n"


def test_the_arguments_of_the_process_are_taken_by_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The installed script calls main() without any."""
    monkeypatch.setattr(sys, "argv", ["hopwatch", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == "hopwatch 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("repot", "No such command 'repot'. Did you mean 'report'?; see hopwatch --help"),
        ("--nope", "No such option: --nope; see hopwatch --help"),
        ("doctor --nope", "No such option: --nope; see hopwatch doctor --help"),
        ("pathway check", "Missing argument 'file'; see hopwatch pathway check --help"),
        (
            "report --by week",
            "Invalid value for '--by': 'week' is not one of 'hour', 'day'; see hopwatch report --help",
        ),
        (
            "topics create --partitions 0",
            ("Invalid value for '--partitions': this is at least 1, got '0'; see hopwatch topics create --help"),
        ),
        (
            "tap http --port x",
            ("Invalid value for '--port': this is a whole number, got 'x'; see hopwatch tap http --help"),
        ),
        (
            "report --fail-on-loss 2",
            "Invalid value for '--fail-on-loss': this is at most 1, got '2'; see hopwatch report --help",
        ),
        (
            "report --fail-on-loss x",
            "Invalid value for '--fail-on-loss': this is a number, got 'x'; see hopwatch report --help",
        ),
        (
            "alerts test --hold -1",
            "Invalid value for '--hold': this is at least 0, got '-1'; see hopwatch alerts test --help",
        ),
        ("demo --minutes", "Option '--minutes' requires an argument; see hopwatch --help"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr says what was wrong, what was got, and which help says what can be."""
    assert main(arguments.split()) == 2
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


@pytest.mark.parametrize("arguments", [[], ["tap"], ["store"]], ids=" ".join)
def test_who_asks_for_nothing_gets_the_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, for nothing was done."""
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()[0].split()[:2]) == ("", ["Usage:", "hopwatch"])


@pytest.mark.parametrize("name", ["", *commands.COMMANDS])
def test_no_line_of_a_list_of_commands_is_cut(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Descriptions of commands fit the width of a terminal."""
    assert main([*name.split(), "--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Commands:")
    assert "..." not in listed


@pytest.mark.parametrize(
    ("error", "exit_code"), [(ConfigurationError("it is [bold] wrong"), 2), (StoreError("it is [bold] wrong"), 3)]
)
def test_an_error_of_the_tree_is_one_line(
    ended_by: Callable[[BaseException], int],
    error: Exception,
    exit_code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its message as it is on stderr, no traceback, the exit code of its branch."""
    assert ended_by(error) == exit_code
    assert capsys.readouterr() == ("", "hopwatch: it is [bold] wrong\n")


def test_a_command_chooses_its_exit_code(ended_by: Callable[[BaseException], int]) -> None:
    """A finding ends with 1, in silence."""
    assert ended_by(typer.Exit(1)) == 1


@pytest.mark.parametrize(("ending", "exit_code"), [(SystemExit(), 0), (SystemExit(4), 4), (SystemExit("words"), 1)])
def test_a_library_that_ends_the_process_has_its_way(
    ended_by: Callable[[BaseException], int], ending: SystemExit, exit_code: int
) -> None:
    """As Python itself counts: none is 0, a number is itself, words are 1."""
    assert ended_by(ending) == exit_code


def test_an_interrupted_command_is_130(
    ended_by: Callable[[BaseException], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is no fault: no traceback, the exit code of shells."""
    assert ended_by(KeyboardInterrupt()) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_interrupted_while_a_command_is_imported_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing Spark takes a moment, and Ctrl-C works then too."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "build_application", interrupted)
    assert main(["report"]) == 130


def test_a_package_that_is_not_installed_is_named(
    ended_by: Callable[[BaseException], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error for a missing package names the extra to install."""
    assert ended_by(ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")) == DependencyError.exit_code
    told = "hopwatch: the Python package 'pyspark.sql' is not installed: pip install 'hopwatch[monitor,demo]'\n"
    assert capsys.readouterr().err == told
    told = "hopwatch: the Python package 'confluent_kafka.admin' is not installed: pip install 'hopwatch[kafka]'\n"
    assert ended_by(ModuleNotFoundError(name="confluent_kafka.admin")) == DependencyError.exit_code
    assert capsys.readouterr().err == told
    assert ended_by(ModuleNotFoundError("No module named 'orjson'", name="orjson")) == DependencyError.exit_code
    told = "hopwatch: the Python package 'orjson' is not installed: pip install 'hopwatch[taps,kafka]'\n"
    assert capsys.readouterr().err == told
    assert ended_by(ModuleNotFoundError(name="opentelemetry.proto")) == DependencyError.exit_code
    told = "hopwatch: the Python package 'opentelemetry.proto' is not installed: pip install 'hopwatch[taps,kafka]'\n"
    assert capsys.readouterr().err == told
    assert ended_by(ModuleNotFoundError("No module named 'streamlit'", name="streamlit")) == DependencyError.exit_code
    told = "hopwatch: the Python package 'streamlit' is not installed: pip install 'hopwatch[monitor,dashboards]'\n"
    assert capsys.readouterr().err == told
    ended_by(ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp"))
    assert "pip install 'hopwatch[monitor,taps,gate,kafka,deliver]'" in capsys.readouterr().err
    ended_by(ModuleNotFoundError("No module named 'authlib'", name="authlib.integrations"))
    assert "pip install 'hopwatch[monitor,dashboards]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("x / 0"), "ZeroDivisionError: x / 0"),
        (
            ModuleNotFoundError("No module named 'hopwatch.monitor.x'", name="hopwatch.monitor.x"),
            "ModuleNotFoundError: No module named 'hopwatch.monitor.x'",
        ),
    ],
)
def test_a_fault_of_our_own_is_70_with_what_to_report(
    ended_by: Callable[[BaseException], int],
    error: Exception,
    told: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lines: what it is, and the file that the traceback was written to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("HOPWATCH_DEBUG", raising=False)
    assert ended_by(error) == 70
    (kept,) = tmp_path.glob("hopwatch-fault-*.txt")
    assert kept.read_text().startswith("Traceback (most recent call last):\n")
    assert kept.read_text().endswith(f"{told}\n")
    assert capsys.readouterr().err == (
        f"hopwatch: a fault of Hopwatch's own: {told}\n"
        f"Please report it with the traceback in {kept}; HOPWATCH_DEBUG=1 prints it instead\n"
    )


@pytest.mark.parametrize("asked", [True, False])
def test_a_traceback_is_printed_when_asked_for_or_not_to_be_written(
    ended_by: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    asked: bool,
) -> None:
    """HOPWATCH_DEBUG=1 prints it; so does a folder for temporary files that is not there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path if asked else tmp_path / "none"))
    monkeypatch.setenv("HOPWATCH_DEBUG", "1" if asked else "0")
    assert ended_by(ZeroDivisionError("x / 0")) == 70
    assert list(tmp_path.iterdir()) == []
    said = capsys.readouterr().err
    assert "Please report it with this traceback:\nTraceback (most recent call last):\n" in said
    assert said.endswith("\nZeroDivisionError: x / 0\n")


def test_the_module_runs_as_a_program() -> None:
    """``python -m hopwatch`` is the program too, exit code and all."""
    command = [sys.executable, "-m", "hopwatch", "nope"]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": "."}, check=False)
    assert ended.returncode == 2
    assert "No such command 'nope'" in ended.stderr


FAILING_IMPORT: Final = """
import sys

class Failing:
    def find_spec(self, name, *_):
        if name == MODULE:
            raise ERROR

sys.meta_path.insert(0, Failing())
from hopwatch.cli.entry import run_program
sys.argv[1:] = ["--help"]
sys.exit(run_program())
"""


def run_with_import(module: str, error: str) -> subprocess.CompletedProcess[str]:
    """Run the program where the import of a module raises an error."""
    source = FAILING_IMPORT.replace("MODULE", repr(module)).replace("ERROR", error)
    return subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )


@pytest.mark.parametrize("module", ["hopwatch.cli.main", "hopwatch.monitor.errors", "hopwatch.cli.commands"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str) -> None:
    """Ctrl-C in the first second of a command ends it as a later one does."""
    ended = run_with_import(module, "KeyboardInterrupt")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_the_library_without_extras_says_what_the_program_needs() -> None:
    """Services that stamp install no command line, and may still call the program."""
    ended = run_with_import("typer", "ModuleNotFoundError(name=name)")
    assert (ended.returncode, ended.stdout) == (DependencyError.exit_code, "")
    assert ended.stderr == (
        "hopwatch: the program needs the Python package 'typer', which is not installed: pip install "
        "'hopwatch[monitor]', or 'hopwatch[taps]' for taps alone\n"
    )


def test_a_module_of_our_own_that_is_missing_is_a_fault() -> None:
    """No package of others would help."""
    ended = run_with_import("hopwatch.cli.main", "ModuleNotFoundError(name=name)")
    assert ended.returncode == 1
    assert ended.stderr.startswith("Traceback")
