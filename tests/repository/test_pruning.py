"""Tests of what the image leaves out: the list is of what is installed, and what is written anew stays whole."""

from __future__ import annotations

import struct
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pytest

from docker import pruning
from tests.repository import ROOT

PACKAGES = Path(sysconfig.get_path("purelib"))


@pytest.mark.parametrize("pattern", pruning.patterns())
def test_every_pattern_names_what_is_installed(pattern: str) -> None:
    """A new version that keeps its files elsewhere would else fill the image again, and nobody would know."""
    assert next(PACKAGES.glob(pattern), None) is not None


def test_what_is_listed_goes_and_the_rest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder goes with all that is in it."""
    (tmp_path / "list.txt").write_text("# why\n\none/tests\n**/*.pyi\n")
    monkeypatch.setattr(pruning, "LIST", tmp_path / "list.txt")
    packages = tmp_path / "packages"
    for name in ("one/tests/a.py", "one/a.py", "one/a.pyi", "two/b/b.pyi", "two/b/b.py"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).touch()
    pruning.remove_listed(packages)
    assert sorted(str(path.relative_to(packages)) for path in packages.rglob("*.*")) == ["one/a.py", "two/b/b.py"]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "s390x"])
@pytest.mark.parametrize("pattern", pruning.TRIMMED)
def test_a_jar_keeps_its_classes_and_one_library(pattern: str, machine: str, tmp_path: Path) -> None:
    """Of a machine that is known, that of Linux with the GNU C library; of another machine the jar stays as it is."""
    (jar,) = (PACKAGES / "pyspark" / "jars").glob(pattern)
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)
    (jars / jar.name).symlink_to(jar)
    pruning.trim_jars(tmp_path, machine)
    (left,) = jars.iterdir()
    before, after = (zipfile.ZipFile(path).infolist() for path in (jar, left))
    natives = [member.filename for member in after if member.filename.endswith(pruning.NATIVE)]
    if machine not in pruning.OURS:
        assert left.is_symlink()
        return
    assert len(natives) == 1
    kept = [member for member in before if not member.filename.endswith(pruning.NATIVE) or member.filename in natives]
    assert [(one.filename, one.CRC) for one in after] == [(one.filename, one.CRC) for one in kept]


def test_libraries_that_are_loaded_are_aligned() -> None:
    """All that this process has mapped of its packages passes the rule by which a stripped one is taken."""
    assert np.__file__
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text("utf-8").splitlines()}
    libraries = [Path(path) for path in mapped if path.startswith(sys.prefix) and ".so" in path]
    assert libraries
    assert all(pruning.is_aligned(library.read_bytes()) for library in libraries)


@pytest.mark.parametrize(("offset", "holds"), [(0x1000, True), (0x2000, True), (0x1010, False)])
def test_what_strip_has_moved_within_a_page_is_not_aligned(offset: int, holds: bool) -> None:  # noqa: FBT001
    """Glibc refuses it: "ELF load command address/offset not page-aligned"."""
    mapped = struct.pack("<IIQQQQQQ", pruning.MAPPED, 5, offset, 0x4000, 0x4000, 64, 64, 0x1000)
    note = struct.pack("<IIQQQQQQ", 4, 4, 0x123, 0x456, 0x456, 8, 8, 4)
    header = bytearray(64)
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<HH", header, 54, 56, 2)
    assert pruning.is_aligned(bytes(header) + note + mapped) is holds


def test_the_image_is_pruned_before_it_is_a_layer() -> None:
    """In the stage of the packages, by the Python that the folder of packages is named after."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    stage = text.partition(" AS packages\n")[2].partition("\nFROM ")[0]
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"docker/pruning.py /opt/hopwatch/lib/python{minor}/site-packages" in stage
    assert f"ARG BASE=python:{minor}." in text
