"""Exceptions of Hopwatch: one tree, each branch with the exit code of the command that it ends.

HopwatchError
├── ConfigurationError      2  what was asked for cannot be: a flag, a file, a key
│   ├── SettingsError          all that is wrong with the settings, each with its place
│   └── SeriesError            all that is wrong with files of series, each with its place
└── DependencyError         3  something that Hopwatch stands on is not there or does not work
    ├── JavaError              no Java, or one that is too old for Spark
    ├── TransportError         the spool is not there, or cannot be read or written
    ├── TapDownError           what a tap reads, or keeps its position in, is not there or does not work
    ├── StoreError             the store is down, locked, full, of another version, or cannot be opened
    │   └── StoreTakenError       another monitor writes to it
    └── CheckpointError        the job's checkpoint does not belong to this store

A message is one sentence for a person: what happened, what was got, what to do. Whatever else is raised is a fault of
Hopwatch's own and ends with 70.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

FAULT_EXIT_CODE: Final = 70
"""The exit code of a fault of Hopwatch's own."""


class HopwatchError(Exception):
    """The root of the tree; never raised itself."""

    exit_code: ClassVar[int] = FAULT_EXIT_CODE


class ConfigurationError(HopwatchError):
    """Invalid flag, file or key; raised before anything starts."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of the settings, or of a file of a series.

    ``source`` is the file, the variable or the flag that said it; ``line`` and ``column`` count from 1 and are there
    when the source is a file and the place in it is known.
    """

    message: str
    key: str = ""
    source: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``file:line:column: key: message``, less what is not known."""
        place = ":".join(str(part) for part in (self.source, self.line, self.column) if part)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class SettingsError(ConfigurationError):
    """All problems of the settings, one line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems beside their text."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class SeriesError(ConfigurationError):
    """All problems of files of series, one line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems beside their text."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class DependencyError(HopwatchError):
    """Something that Hopwatch needs is missing or does not work."""

    exit_code = 3


class JavaError(DependencyError):
    """No Java, or one that is too old for Spark."""


class TransportError(DependencyError):
    """The spool is not there, or cannot be read or written."""


class TapDownError(DependencyError):
    """The source of a tap, or the place of its position, is missing or does not work."""


class StoreError(DependencyError):
    """The store is down, locked, full, of another version, or cannot be opened."""


class StoreTakenError(StoreError):
    """Another monitor writes to the store."""

    def __init__(self, place: object) -> None:
        """Name the store."""
        advice = "stop it first, or name another store in [store] url"
        super().__init__(f"another monitor writes to the store {place}: {advice}")


class CheckpointError(DependencyError):
    """The job's checkpoint does not belong to this store."""
