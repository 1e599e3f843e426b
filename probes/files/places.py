"""Places of files: what paths, folders, patterns and URLs stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from hopwatch.probes.taps.errors import TapSourceError, TapUsageError


def list_places(given: Iterable[str]) -> list[str]:
    """Return the files that were named, each once, in order; of a folder all below it.

    Raises:
        TapUsageError: a name stands for no file.
        TapSourceError: a folder cannot be read.
    """
    found: dict[str, None] = {}
    for name in given:
        here = list(_list_one(name))
        if not here:
            raise TapUsageError(_describe_nothing(name))
        found.update(dict.fromkeys(here))
    return list(found)


def list_folder(folder: Path, above: tuple[os.stat_result, ...] = ()) -> Iterator[str]:
    """Yield all files below a folder, in order, but hidden ones, which are not finished.

    A folder in it may be gone by the time that it is looked into, as those of a day that was cleaned up. A link to one
    of the folders ``above`` it is not followed.

    Raises:
        TapSourceError: it, or a folder in it, cannot be read.
    """
    try:
        own = folder.stat()
        if any(os.path.samestat(own, one) for one in above):
            return
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if above and isinstance(error, FileNotFoundError):
            return
        raise TapSourceError(f"the folder {folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from list_folder(Path(entry.path), (*above, own))
        elif entry.is_file():
            yield entry.path


def _describe_nothing(name: str) -> str:
    if "://" not in name and Path(name).is_dir():
        return f"there is no file in the folder {name!r:.200}: names that begin with a dot or _ are not looked at"
    return f"there is no file {name!r:.200}"


def _list_one(name: str) -> Iterable[str]:
    if "://" in name:
        return (name,)
    if Path(name).is_dir():
        return list_folder(Path(name))
    if has_magic(name) and not Path(name).exists():
        return sorted(path for path in glob(name, recursive=True) if Path(path).is_file())  # noqa: PTH207 - as a shell has it
    return (name,) if Path(name).exists() else ()
