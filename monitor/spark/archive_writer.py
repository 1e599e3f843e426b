"""Program that writes the archive of Spark's classes, as Java loaded and checked them while both jobs ran."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.spark import archive, job, session
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.segment import MAGIC, encode_frame

_WRITTEN_WITHIN_S: Final = 120.0
_DAY_US: Final = 86_400_000_000
_MINUTE_US: Final = 60_000_000


def write_archive(folder: Path = archive.FOLDER) -> None:
    """Write an archive of the classes that Spark loads for a small spool, in batch and in streaming mode.

    Raises:
        DependencyError: Spark does not start, or Java has written nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="archiving-", dir=folder) as scratch:
        made = Path(scratch) / "made.jsa"
        _run(Path(scratch), made)
        if not made.is_file():
            raise DependencyError(
                f"Java wrote no archive of its classes into {folder}: it takes OpenJDK's, 17 or newer"
            )
        archive.store_archive(made, folder=folder)


def _run(folder: Path, made: Path) -> None:
    """Run both jobs, and wait until Java, which writes the file when it ends, has ended."""
    spool = folder / "spool"
    spool.mkdir()
    (spool / "0.seg").write_bytes(MAGIC + encode_frame(encode(_heartbeat())))
    rules = {"orders": StreamConfig(Pathway.parse("a -> b"), WindowPolicy(_MINUTE_US, _MINUTE_US, _DAY_US, _DAY_US))}
    asked = f'{session.JAVA_OPTIONS} "-XX:ArchiveClassesAtExit={made}"'
    spark = session.start_session(folder / "work", more={archive.OPTIONS: asked})
    for name in ("once", "stream"):
        engine = dialect.create_engine(f"sqlite:///{folder / name}.db")
        try:
            schema.prepare_store(engine)
            place = job.JobContext(SpoolSource(spool), engine, rules, folder / name)
            if name == "once":
                job.run_once(spark, place, lambda _: None)
            else:
                query = job.start_stream(spark, place, "0 seconds", lambda _: None)
                query.processAllAvailable()
                query.stop()
        finally:
            engine.dispose()
    spark.stop()
    # It ends when its standard input does.
    process = SparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - no other way leads to the process
    process.stdin.close()
    process.wait(_WRITTEN_WITHIN_S)


def _heartbeat() -> Batch:
    """Return a batch of a probe that has nothing to say, of a day long ago."""
    return Batch("a-probe", _DAY_US, 0, BatchKind.HEARTBEAT, "orders", "a", _DAY_US // 1_000, 2 * _DAY_US, 2 * _DAY_US)


if __name__ == "__main__":
    try:
        write_archive()
    except DependencyError as error:
        sys.exit(f"hopwatch: {error}")
