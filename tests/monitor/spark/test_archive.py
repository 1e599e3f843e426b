"""Tests of the archive of Spark's classes: taken where it fits, passed over in silence where it does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
import pytest
from pyspark import SparkContext

from hopwatch.monitor import java
from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.spark import archive, archive_writer, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS: Final = Path(pyspark.__file__).parent / "jars"
PROGRAM: Final = "org.apache.spark.launcher.Main"
"""A little program of Spark's: without arguments it says what it misses, and ends with 1."""
MAPPED: Final = f"{PROGRAM} source: shared objects file (top)"
Ended = tuple[int, str]


def run(folder: Path, *flags: str) -> tuple[Ended, bool]:
    """Return what the program ends with and says, Java too, and whether it came from an archive."""
    program, found = java.find_executable(), folder / "loaded"
    assert program
    (jar,) = folder.glob("*.jar")
    command = [program, *flags, f"-Xlog:class+load:file={found.name}", "-cp", jar.name, PROGRAM]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return (ended.returncode, ended.stdout + ended.stderr), MAPPED in found.read_text("utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Return a folder with an archive of the program, and how that ends by itself."""
    folder = tmp_path_factory.mktemp("place")
    (jar,) = JARS.glob("spark-launcher_*.jar")
    shutil.copy2(jar, folder)
    plain, is_mapped = run(folder)
    assert not is_mapped
    run(folder, "-XX:ArchiveClassesAtExit=made.jsa")
    archive.store_archive(folder / "made.jsa", folder=folder)
    return folder, plain


@pytest.fixture
def place(written: tuple[Path, Ended], tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(written[0], tmp_path / "place", copy_function=shutil.copy2))


def test_an_archive_that_fits_is_taken(written: tuple[Path, Ended]) -> None:
    """The program ends and says as it did."""
    folder, plain = written
    assert run(folder, *archive.java_flags(folder=folder)) == (plain, True)


def test_an_archive_of_other_jars_is_passed_over_in_silence(written: tuple[Path, Ended], place: Path) -> None:
    """Of a jar that was changed since, as by another version."""
    (jar,) = place.glob("*.jar")
    with jar.open("ab") as file:
        file.write(b"\0")
    assert run(place, *archive.java_flags(folder=place)) == (written[1], False)


def test_what_is_no_archive_is_passed_over_in_silence(written: tuple[Path, Ended], place: Path) -> None:
    """Of the size that its name says, as one of another Java may be."""
    (file,) = place.glob("*.jsa")
    size = file.stat().st_size
    file.unlink()
    file.write_bytes(bytes(size))
    flags = archive.java_flags(folder=place)
    assert flags[0] == f"-XX:SharedArchiveFile={file}"
    assert run(place, *flags) == (written[1], False)


def test_an_archive_that_was_cut_short_is_none(place: Path) -> None:
    """Java would die of it: it is known by its size."""
    (file,) = place.glob("*.jsa")
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(whole[:-1])
    assert (archive.java_flags(folder=place), archive.java_options(place)) == ([], "")


def test_a_new_archive_takes_the_place_of_all_that_are_there(tmp_path: Path) -> None:
    """Also of one of the same size; those of other programs stay."""
    for name in ("spark.3.jsa", "spark.4.jsa", "broker.3.jsa", "made"):
        (tmp_path / name).write_bytes(name[:4].encode())
    archive.store_archive(tmp_path / "made", folder=tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"spark.4.jsa", "broker.3.jsa"}
    assert (tmp_path / "spark.4.jsa").read_bytes() == b"made"
    assert archive.java_options(tmp_path).startswith(f' "-XX:SharedArchiveFile={tmp_path}/spark.4.jsa" ')


def test_sparks_java_maps_the_archive_that_is_there(spark: SparkSession) -> None:
    """And none where there is none."""
    assert spark.conf.get(archive.OPTIONS) == session.JAVA_OPTIONS + archive.java_options()
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    mapped = {Path(word) for word in Path(f"/proc/{process.pid}/maps").read_text("utf-8").split() if "/spark." in word}
    assert mapped == {Path(flag.partition("=")[2]) for flag in archive.java_flags()[:1]}


def test_a_java_that_writes_no_archive_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Java writes no archive, an error says so, and the old archive stays."""
    (tmp_path / "spark.3.jsa").write_bytes(b"old")
    monkeypatch.setattr(archive_writer, "_run", lambda *_: None)
    with pytest.raises(DependencyError) as caught:
        archive_writer.write_archive(tmp_path)
    assert str(caught.value) == (
        f"Java wrote no archive of its classes into {tmp_path}: it takes OpenJDK's, 17 or newer"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["spark.3.jsa"]


@pytest.mark.soak
def test_the_archive_of_spark_is_written_and_taken(tmp_path: Path) -> None:
    """As `make servers` does before all tests: most of the classes of a Spark that starts later come from it."""
    make = "from pathlib import Path; from hopwatch.monitor.spark import archive_writer; archive_writer.write_archive"
    code = f"{make}(Path({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
    (file,) = tmp_path.iterdir()
    more = f"{session.JAVA_OPTIONS}{archive.java_options(tmp_path)} -Xlog:class+load:file={tmp_path}/loaded"
    code = (
        "from pathlib import Path; from hopwatch.monitor.spark import session\n"
        f"session.start_session(Path({str(tmp_path / 'work')!r}), more={{{archive.OPTIONS!r}: {more!r}}}).stop()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
    loaded = (tmp_path / "loaded").read_text("utf-8").splitlines()
    of_spark = [line for line in loaded if " org.apache.spark." in line]
    assert file.name == f"spark.{file.stat().st_size}.jsa"
    assert sum("shared objects file (top)" in line for line in of_spark) > len(of_spark) / 2
