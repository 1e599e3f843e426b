"""Entry point of ``hopwatch``: run a command, and turn its errors into messages and exit codes.

0 ok · 1 a finding · 2 usage or configuration · 3 a dependency is down · 70 a fault of Hopwatch's own · 130 interrupted
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

from hopwatch.cli.configuration import read_variable
from hopwatch.cli.entry import INTERRUPTED_EXIT_CODE
from hopwatch.monitor.errors import FAULT_EXIT_CODE, DependencyError, HopwatchError, SeriesError, SettingsError
from hopwatch.monitor.texts import validation
from hopwatch.monitor.texts.escaping import escape_lines

GATE_EXTRAS: Final = "monitor,taps,gate"
DELIVER_EXTRAS: Final = "monitor,taps,gate,kafka,deliver"
TAPS_EXTRAS: Final = "taps,kafka"
TAPS_PACKAGES: Final = frozenset({"fastapi", "granian", "grpc", "opentelemetry", "orjson"})
"""Packages that the taps need and the monitor does not."""
DASHBOARD_PACKAGES: Final = frozenset({"authlib", "httpx", "streamlit", "uvicorn"})
OWN_PACKAGES: Final = frozenset({"hopwatch", "bench"})


@runtime_checkable
class _UsageError(Protocol):
    """Error of typer for a wrong command line; a protocol, so that typer is imported only when needed."""

    exit_code: int

    def format_message(self) -> str:
        """Return the message."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, those of this process by default; return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from hopwatch.cli.commands import build_application

        code = build_application(given)(given, prog_name="hopwatch", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except Exception as error:  # noqa: BLE001 - the last place that can report an error
        return _report_error(error)
    # Only commands that exit with a code return one.
    return code if isinstance(code, int) else 0


def _report_error(error: Exception) -> int:
    """Print an error on stderr, and return the exit code."""
    match error:
        case SettingsError() | SeriesError():
            # Each line starts with file and line, so that an editor can jump there.
            _print_error(str(error))
        case HopwatchError():
            _print_error(f"hopwatch: {error}")
        case _UsageError():
            _print_error(_format_usage_error(error))
        case ModuleNotFoundError() if (error.name or "").partition(".")[0] not in OWN_PACKAGES:
            extras = _find_extras(error.name)
            _print_error(
                f"hopwatch: the Python package {error.name!r} is not installed: pip install 'hopwatch[{extras}]'"
            )
            return DependencyError.exit_code
        case _:
            what = "".join(traceback.format_exception_only(error)).strip()
            _print_error(f"hopwatch: a fault of Hopwatch's own: {what}\nPlease report it with {_save_traceback(error)}")
            return FAULT_EXIT_CODE
    return error.exit_code


def _find_extras(package: str | None) -> str:
    """Return the extras of the distribution that contain a package."""
    if (package or "").partition(".")[0] == "avro":
        return GATE_EXTRAS
    if (package or "").partition(".")[0] == "aiohttp":
        return DELIVER_EXTRAS
    if (package or "").partition(".")[0] == "confluent_kafka":
        return "kafka"
    if (package or "").partition(".")[0] in TAPS_PACKAGES:
        return TAPS_EXTRAS
    return "monitor,dashboards" if (package or "").partition(".")[0] in DASHBOARD_PACKAGES else "monitor,demo"


def _format_usage_error(error: _UsageError) -> str:
    """Format the error of a wrong command line: the value got, and the help to read."""
    what = error.format_message().rstrip(".")
    if "\n" in what:
        # Without arguments the message is the help.
        return what
    cause: Any = getattr(error, "__cause__", None)
    found = cause.errors() if hasattr(cause, "errors") else []
    for one in found:
        what = what.replace(one["msg"], validation.describe_error(one["type"], one.get("ctx", {}), one["msg"]))
    what = what.removeprefix("Value error, ").replace(" Value error, ", " ").replace(" value error, ", " ")
    got = [f"{one['input']!r:.80}" for one in found]
    told = ", got ".join([what, *(one for one in got if one not in what)])
    command = getattr(getattr(error, "ctx", None), "command_path", "hopwatch")
    return f"hopwatch: {told}; see {command} --help"


def _save_traceback(error: Exception) -> str:
    """Save the traceback to a file and return its name; return the traceback itself with HOPWATCH_DEBUG=1."""
    trace = "".join(traceback.format_exception(error))
    if read_variable("HOPWATCH_DEBUG") != "1":
        try:
            with tempfile.NamedTemporaryFile("w", prefix="hopwatch-fault-", suffix=".txt", delete=False) as file:
                file.write(trace)
        except OSError:
            pass
        else:
            return f"the traceback in {file.name}; HOPWATCH_DEBUG=1 prints it instead"
    return f"this traceback:\n{trace}"


def _print_error(words: str) -> None:
    sys.stderr.write(escape_lines(words.rstrip("\n")) + "\n")
