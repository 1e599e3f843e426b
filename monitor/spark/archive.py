"""The archive of Spark's classes, which Java maps when it starts: its path and the Java flags for it (ADR 0161)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(sys.prefix) / "jars"
"""Folders in which the monitor looks for it, by the name ``spark.<bytes>.jsa``."""
NAME: Final = "spark"
OPTIONS: Final = "spark.driver.extraJavaOptions"


def java_flags(name: str = NAME, folder: Path = FOLDER) -> list[str]:
    """Return the flags by which Java takes an archive; none where it is not there, or not whole.

    One that was made by another Java or of other jars Java ignores by itself, and these flags keep it from telling so.
    Of one that was cut short it would die: so its size is a part of its name.
    """
    whole = [file for file in _named(name, folder) if file.stem == f"{name}.{file.stat().st_size}"]
    return (
        [f"-XX:SharedArchiveFile={whole[0]}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if whole else []
    )


def java_options(folder: Path = FOLDER) -> str:
    """Return the flags for Spark's archive as Spark takes Java's options: a path may have a space."""
    return "".join(f' "{flag}"' for flag in java_flags(folder=folder))


def store_archive(made: Path, name: str = NAME, folder: Path = FOLDER) -> None:
    """Move an archive that Java has written to where it is looked for, in the place of those that are there."""
    before = _named(name, folder)
    kept = made.replace(folder / f"{name}.{made.stat().st_size}.jsa")
    for file in before:
        if file != kept:
            file.unlink(missing_ok=True)


def _named(name: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{name}.*.jsa"))
