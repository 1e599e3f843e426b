"""Remove from an installation what no command of the program needs: ``python pruning.py FOLDER_OF_PACKAGES``.

The Dockerfile runs it by itself, before the packages become a layer: it needs Python and binutils, and nothing else.
"""

from __future__ import annotations

import platform
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).with_name("pruned.txt")
NATIVE: Final = (".so", ".dll", ".dylib", ".jnilib", ".a")
TRIMMED: Final = ("rocksdbjni-*.jar", "snappy-java-*.jar", "zstd-jni-*.jar")
"""Jars with native code of a dozen systems, of which one is this."""
OURS: Final = {
    "x86_64": ("linux64.so", "linux/amd64/", "Linux/x86_64/"),
    "aarch64": ("linux-aarch64.so", "linux/aarch64/", "Linux/aarch64/"),
}
"""How these jars name the native code of a machine with Linux and the GNU C library."""

MAPPED: Final = 1
"""The type of an ELF program header that says what is mapped into memory."""


def patterns() -> list[str]:
    """Return the patterns of the list, without its comments."""
    lines = LIST.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def remove_listed(packages: Path) -> None:
    """Remove every file and folder that a pattern of the list names."""
    for pattern in patterns():
        for found in list(packages.glob(pattern)):
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink(missing_ok=True)


def trim_jars(packages: Path, machine: str) -> None:
    """Write the jars with native code anew, without that of other machines; of a machine not known, leave them."""
    for pattern in TRIMMED if machine in OURS else ():
        for jar in (packages / "pyspark" / "jars").glob(pattern):
            _trim(jar, OURS[machine])


def strip_symbols(packages: Path) -> None:
    """Remove from shared libraries the symbols that only debuggers read; of one that it would break, nothing.

    It breaks those that patchelf has changed, as wheels with libraries of their own have them.
    """
    for library in _libraries(packages):
        stripped = library.with_name(f"{library.name}.stripped")
        command = ["strip", "--strip-unneeded", "-o", str(stripped), str(library)]
        subprocess.run(command, check=True)  # noqa: S603 - it takes nothing from outside
        if is_aligned(stripped.read_bytes()):
            stripped.replace(library)
        else:
            stripped.unlink()


def is_aligned(library: bytes) -> bool:
    """Whether the loader takes a library of 64 bits: the rule of glibc's elf/dl-load.c for all that is mapped."""
    (first,) = struct.unpack_from("<Q", library, 32)
    each, count = struct.unpack_from("<HH", library, 54)
    headers = (struct.unpack_from("<IIQQQQQQ", library, first + number * each) for number in range(count))
    return all(
        (address - offset) % align == 0 for kind, _, offset, address, _, _, _, align in headers if kind == MAPPED
    )


def _trim(jar: Path, ours: tuple[str, ...]) -> None:
    trimmed = jar.with_suffix(".trimmed")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(trimmed, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if not member.filename.endswith(NATIVE) or any(name in member.filename for name in ours):
                new.writestr(member, old.read(member))
    trimmed.replace(jar)


def _libraries(packages: Path) -> Iterator[Path]:
    for path in sorted(packages.rglob("*.so*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


if __name__ == "__main__":
    given = Path(sys.argv[1])
    if not (given / "pyspark" / "jars").is_dir():
        sys.exit(f"there is no pyspark/jars in {given}: name the folder that pip has installed into")
    remove_listed(given)
    trim_jars(given, platform.machine())
    strip_symbols(given)
