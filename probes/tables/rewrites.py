"""Files that hold the rows of others, as a compaction writes them: told by their number and their fingerprint.

Which file was made of which nobody says in a folder. Files are compared that were new at one look in one folder, all
together and each by itself, with those that are gone from there, alone and with those that are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract.fingerprints import Fingerprint, mix_ids, take_fingerprint


class FileLook(NamedTuple):
    """File as it was at a look: its path, its size, and when it was written, ns since 1970."""

    path: str
    size: int
    mtime_ns: int

    @property
    def folder(self) -> str:
        """Return the folder that it is in."""
        return str(Path(self.path).parent)


class RowsPrint(NamedTuple):
    """Number of rows, and the fingerprint of what is in their columns."""

    rows: int = 0
    id_xor: int = 0
    id_sum: int = 0

    @classmethod
    def of_rows(cls, *columns: NDArray[np.uint64]) -> RowsPrint:
        """Return the print of rows by their columns, each as pairs of 64 bits, shape (n, 2)."""
        joined = reduce(lambda left, right: np.column_stack((mix_ids(left), mix_ids(right))), columns)
        return cls(len(joined), *take_fingerprint(joined))

    def plus(self, other: RowsPrint) -> RowsPrint:
        """Return the print of both."""
        joined = Fingerprint(self.id_xor, self.id_sum).plus(Fingerprint(other.id_xor, other.id_sum))
        return RowsPrint(self.rows + other.rows, *joined)


class Rewrite(NamedTuple):
    """New files that hold the rows of others."""

    new: tuple[FileLook, ...]
    old: tuple[FileLook, ...]


def find_rewrites(
    new: Collection[FileLook],
    gone: Mapping[FileLook, RowsPrint],
    here: Mapping[FileLook, RowsPrint],
    count_rows: Callable[[FileLook], int],
    take_print: Callable[[FileLook], RowsPrint],
) -> Iterator[Rewrite]:
    """Yield the rewrites among new files, at most one a folder: those of files that are gone come first.

    Rows are counted first, which a file says in its end: a print, for which it is read, is taken where that is right.
    """
    for folder, files in groupby(sorted(new), lambda look: look.folder):
        left, stay = ({look: one for look, one in known.items() if look.folder == folder} for known in (gone, here))
        found = tuple(files)
        for old, chosen in product((left, left | stay), dict.fromkeys([found, *((one,) for one in found)])):
            whole = reduce(RowsPrint.plus, old.values(), RowsPrint())
            if not whole.rows or sum(map(count_rows, chosen)) != whole.rows:
                continue
            if reduce(RowsPrint.plus, map(take_print, chosen), RowsPrint()) == whole:
                yield Rewrite(chosen, tuple(old))
                break
