"""Log of a state: JSON lines, of which the first one says what it is the state of, each durable when it is written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, TextIO


def read_log(file: TextIO, version: int, plan: object) -> Iterator[dict[str, Any]]:
    """Yield the first line of a log and all others; nothing of one without a whole first line, which is emptied.

    A kill may have left half a line at its end. Once all others were read it is cut off.

    Raises:
        ValueError: it is of another version or plan, or a line is no JSON.
        TypeError: a line is another value of JSON.
        KeyError: the first line has no version or plan.
    """
    file.seek(0)
    lines = file.read().splitlines(keepends=True)
    if not lines or not lines[0].endswith("\n"):
        file.truncate(0)
        return
    head = json.loads(lines[0])
    if (head["version"], head["plan"]) != (version, plan):
        raise ValueError(f"it is of {head['plan']!s:.200}")
    yield head
    yield from (json.loads(line) for line in lines[1:] if line.endswith("\n"))
    if not lines[-1].endswith("\n"):
        file.truncate(len("".join(lines[:-1]).encode()))


def write_line(file: TextIO, line: Mapping[str, Any]) -> None:
    """Write a line, and make it durable.

    Raises:
        OSError: it cannot be written.
    """
    file.write(json.dumps(line) + "\n")
    file.flush()
    os.fsync(file.fileno())
