"""The same work in one run, one contestant after the other on two cores: the monitor both ways, and its peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.contestant import ContestantRun, run
from bench.footprint import folder_bytes
from bench.generate import GeneratedWork, bytes_needed, generate_work, require_disk
from bench.work import Work

WARM_RUNS: Final = 3
STREAM: Final = "Hopwatch, stream"
ONCE: Final = "Hopwatch --once, cold"
ONCE_WARM: Final = "Hopwatch --once, warm"
SPOOL_TO_STORE: Final = "spool to store: CRC, decoding, books, verdicts, digests, lost ids, store"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SpeedLine:
    """Figures of one contestant: s, observations per second, peak memory and disk, and its input, in bytes.

    ``memory_bytes`` is that of all its processes, ``mapped_bytes`` the part of it that are pages of files. ``seconds``
    are none where a rate is that of a part of another line.
    """

    who: str
    includes: str
    seconds: float | None
    rate: float
    memory_bytes: int | None = None
    mapped_bytes: int | None = None
    disk_bytes: int | None = None
    input_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """A contestant that is not ours: the function that runs it, and whether it reads Parquet."""

    who: str
    function: str
    includes: str
    reads_parquet: bool = True


PEERS: Final = (
    Peer(
        "Spark SQL, bit_or",
        "bench.peers.spark:bitmask",
        "session there and warmed on one window; Parquet to figures; bit_or a message, percentile_approx; no books",
    ),
    Peer(
        "Spark SQL, anti-joins",
        "bench.peers.spark:anti_joins",
        "session there and warmed on one window; Parquet to figures; an anti-join a hop, percentile_approx; no books",
    ),
    Peer(
        "DuckDB",
        "bench.peers.duck:run",
        "Parquet to figures; bit_or a message, exact quantiles; no books",
    ),
    Peer(
        "bare kernel",
        "bench.peers.kernel:run",
        "our tallies of arrays in memory, two processes; no wire, disk, Spark, store, books, verdicts",
        reads_parquet=False,
    ),
)


def measure(observations: int, scratch: Path, tell: Progress) -> list[SpeedLine]:
    """Return a line a contestant; each result was checked.

    Raises:
        WorkError: so many observations cannot be measured.
        DiskError: the scratch folder's disk is too small.
        ContestantError: a contestant failed, or found what is not there.
    """
    work = Work(observations)
    require_disk(scratch, bytes_needed(work, with_parquet=True))
    tell(f"making {observations:,} observations")
    made_work = generate_work(work, scratch, with_parquet=True)
    ours = [*_stream(made_work, scratch, tell), *_once(made_work, scratch, tell)]
    return [*ours, *(_peer(peer, made_work, scratch, tell) for peer in PEERS)]


def _stream(made_work: GeneratedWork, scratch: Path, tell: Progress) -> list[SpeedLine]:
    tell(STREAM)
    ran = run("bench.ours:backlog", scratch, **_arguments(made_work))
    includes = f"first query of a session, {SPOOL_TO_STORE}, state, checkpoints"
    whole = _line(STREAM, includes, made_work, made_work.spool, ran.result["backlog_s"], ran)
    steady_rate = ran.result["rates"]["steady"]
    if steady_rate is None:
        return [whole]
    return [
        whole,
        SpeedLine(f"{STREAM}, 2nd trigger on", "the same, from the end of the first trigger", None, steady_rate),
    ]


def _once(made_work: GeneratedWork, scratch: Path, tell: Progress) -> list[SpeedLine]:
    tell(ONCE)
    cold = run("bench.ours:run_once", scratch, runs=1, **_arguments(made_work))
    tell(ONCE_WARM)
    warm = run("bench.ours:run_once", scratch, runs=1 + WARM_RUNS, **_arguments(made_work))
    (cold_s,), warm_s = cold.result["query_s"], median(warm.result["query_s"][1:])
    process_s = cold.process_s - cold.result["checked_s"]
    return [
        _line(
            f"{ONCE}, process",
            f"starting Python and Java, {SPOOL_TO_STORE}",
            made_work,
            made_work.spool,
            process_s,
            cold,
        ),
        _line(
            f"{ONCE}, query", f"first query of a session, {SPOOL_TO_STORE}", made_work, made_work.spool, cold_s, cold
        ),
        _line(ONCE_WARM, f"the same, median of {WARM_RUNS} later ones", made_work, made_work.spool, warm_s, warm),
    ]


def _peer(peer: Peer, made_work: GeneratedWork, scratch: Path, tell: Progress) -> SpeedLine:
    tell(peer.who)
    ran = run(peer.function, scratch, **_arguments(made_work))
    reads = made_work.parquet(0).parent if peer.reads_parquet else None
    return _line(peer.who, peer.includes, made_work, reads, ran.result["query_s"], ran)


def _arguments(made_work: GeneratedWork) -> dict[str, object]:
    return {"work": made_work.work.as_json(), "made": str(made_work.folder)}


def _line(  # noqa: PLR0913, PLR0917 - what a line says
    who: str, includes: str, made_work: GeneratedWork, reads: Path | None, seconds: float, ran: ContestantRun
) -> SpeedLine:
    peak, rate = ran.peak, made_work.work.observations / seconds
    read_bytes = folder_bytes(reads) if reads else None
    return SpeedLine(who, includes, seconds, rate, peak.memory_bytes, peak.mapped_bytes, peak.disk_bytes, read_bytes)
