"""Through a real broker: what the sink of a probe sustains, and how fast the job brings a backlog to the store.

The broker keeps the time of arrival, so the same work as everywhere is moved to the minutes of today.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.contestant import CORES, ContestantRun, Json, run
from bench.generate import GeneratedWork, bytes_needed, generate_work, require_disk
from bench.progress import Trigger, wait_until
from bench.result_check import check_store
from bench.speed import Progress
from bench.truth import WrongResultError
from bench.work import FIRST_START_MS, Work, rules
from hopwatch.monitor.spark import job, session
from hopwatch.monitor.spark.sources.kafka import KafkaSource
from hopwatch.monitor.store import dialect, fencing, reader, schema
from hopwatch.probes.contract import segment
from hopwatch.probes.contract.envelope import decode, encode
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.limits import WINDOW_MS
from hopwatch.probes.sinks.kafka import KafkaSink
from servers.kafka import Kafka

MINUTES: Final = 4
"""All of them are plausible at once: from the minute before this one to two ahead."""
PARTITIONS: Final = 4
RECORDS_PER_TRIGGER: Final = 1_000
TOPIC: Final = "hopwatch.observations"
SINK_GOAL: Final = 1_000_000.0
JOB_GOAL: Final = 1_500_000.0
_REST_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class KafkaThroughput:
    """Throughput over the broker: observations and bytes per second, bytes per observation, memory of the processes."""

    what: str
    rate: float
    goal_rate: float | None
    bytes_rate: float
    bytes_an_observation: float
    memory_bytes: int | None = None


def measure(observations: int, scratch: Path, tell: Progress) -> list[KafkaThroughput]:
    """Return what was measured with half as many observations; each result was checked.

    Raises:
        WorkError: so many observations cannot be measured.
        DiskError: the scratch folder's disk is too small.
        ServerError: the broker does not start.
        ContestantError: the monitor failed, or found what is not there.
    """
    work = Work(observations // 2, minutes=MINUTES)
    require_disk(scratch, bytes_needed(work, with_parquet=False))
    tell(f"making {work.observations:,} observations")
    made_work = generate_work(work, scratch)
    broker = Kafka(scratch / "broker")
    try:
        broker.start()
        broker.create_topic(TOPIC, PARTITIONS)
        moved_ms = (int(time.time() * 1_000) // WINDOW_MS - 1) * WINDOW_MS - FIRST_START_MS
        told = {"work": work.as_json(), "made": str(made_work.folder), "url": broker.url(TOPIC)}
        tell("the sink of a probe")
        sent = run("bench.kafka:send", scratch, moved_ms=moved_ms, **told)
        kept_bytes = sum(log.stat().st_size for log in broker.folder.rglob(f"{TOPIC}-*/*.log"))
        tell("a backlog, as a stream")
        caught = run("bench.kafka:catch_up", scratch, records=sent.result["records"], **told)
        tell("all of it, once")
        once = run("bench.kafka:once", scratch, moved_ms=moved_ms, **told)
    finally:
        broker.stop()
    wire = sent.result["bytes"] / work.observations
    steady = caught.result["steady"]
    lines = [
        _line("the sink of a probe, until all is acknowledged", sent.result["rate"], SINK_GOAL, wire, sent),
        KafkaThroughput(
            "… as the broker keeps it, compressed", sent.result["rate"], None, *_kept(sent, kept_bytes, work)
        ),
        _line("a backlog to the store, starting included", caught.result["whole"], None, wire, caught),
        _line("all of it once, until every window is final in the store", once.result["rate"], None, wire, once),
    ]
    if steady is not None:
        lines.insert(2, _line("a backlog to the store, from the second trigger on", steady, JOB_GOAL, wire, caught))
    return lines


def _line(what: str, rate: float, goal: float | None, wire: float, ran: ContestantRun) -> KafkaThroughput:
    return KafkaThroughput(what, rate, goal, rate * wire, wire, ran.peak.memory_bytes)


def _kept(sent: ContestantRun, kept_bytes: int, work: Work) -> tuple[float, float]:
    of_one = kept_bytes / work.observations
    return sent.result["rate"] * of_one, of_one


def send(folder: Path, work: Json, made: str, url: str, moved_ms: int) -> Json:  # noqa: ARG001 - all are called alike
    """Send the work through the sinks of its probe instances, as fast as they take it."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    records = list(_moved(of_kind, moved_ms))
    sinks = {name: KafkaSink(KafkaPlace.parse(url), name) for name in {name for name, _ in records}}
    began_s = time.perf_counter()
    for name, record in records:
        while not sinks[name].send(record):
            time.sleep(_REST_S)
    if not all(sink.settle(60) for sink in sinks.values()):
        raise WrongResultError("all records are acknowledged, got some that are not")
    took_s = time.perf_counter() - began_s
    for sink in sinks.values():
        sink.close()
    return {
        "rate": of_kind.truth().observations / took_s,
        "bytes": sum(len(record) for _, record in records),
        "records": len(records),
    }


def _moved(of_kind: GeneratedWork, moved_ms: int) -> Iterator[tuple[str, bytes]]:
    """Yield the instance and the record of each batch, in order of arrival, in other minutes."""
    moved_us = moved_ms * 1_000
    for path in sorted(of_kind.spool.rglob("*.seg"), key=lambda path: path.stat().st_mtime_ns):
        data = path.read_bytes()
        for frame in segment.read_frames(data):
            batch = decode(data[frame.start : frame.end])
            yield (
                path.parent.name,
                encode(
                    replace(
                        batch,
                        epoch_us=batch.epoch_us + moved_us,
                        window_start_ms=batch.window_start_ms + moved_ms,
                        sent_at_us=batch.sent_at_us + moved_us,
                        complete_through_us=batch.complete_through_us + moved_us,
                    )
                ),
            )


def catch_up(folder: Path, work: Json, made: str, url: str, records: int) -> Json:
    """Read a backlog as a stream, until nothing is left; what was read is in the store, the windows are open."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    where = _place(of_kind.work, folder, url)
    spark = session.start_session(folder / "session", cores=CORES, more=where.source.spark_settings)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    fencing.claim_store(where.engine, where.checkpoint, where.rules)
    began_s = time.time()
    query = job.start_stream(spark, where, "0 seconds", lambda _: None)
    found = wait_until(query, lambda found: sum(one.segments for one in found) >= records and not found[-1].segments)
    session.stop_quietly(query.stop)
    spark.stop()
    read = [one for one in found if one.segments]
    observations = of_kind.truth().observations
    with where.engine.begin() as connection:
        told = reader.read_accounts(connection)
    if (told["observations"], told["duplicate_batches"], told["implausible"], told["set_aside"]) != (
        observations, 0, 0, {}
    ):  # fmt: skip
        raise WrongResultError(f"{observations:,} observations are in the store, each once, got {told}")
    return {
        "whole": observations / (read[-1].end_s - began_s),
        "steady": observations * _share(read[1:], read) / (read[-1].end_s - read[0].end_s) if read[1:] else None,
    }


def _share(some: Sequence[Trigger], every: Sequence[Trigger]) -> float:
    """Return which part of all records some triggers have read."""
    return sum(one.segments for one in some) / sum(one.segments for one in every)


def once(folder: Path, work: Json, made: str, url: str, moved_ms: int) -> Json:
    """Read all of it in one batch, until every window is final in the store."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    where = _place(of_kind.work, folder, url)
    spark = session.start_session(folder / "session", cores=CORES, more=where.source.spark_settings)
    began_s = time.perf_counter()
    job.run_once(spark, where, lambda _: None)
    took_s = time.perf_counter() - began_s
    spark.stop()
    check_store(where.engine, of_kind.work, of_kind.truth(), moved_ms)
    return {"rate": of_kind.truth().observations / took_s}


def _place(work: Work, folder: Path, url: str) -> job.JobContext:
    engine = dialect.create_engine(f"sqlite:///{folder / 'store.db'}")
    schema.prepare_store(engine)
    source = KafkaSource(
        KafkaPlace.parse(url), KafkaAccess(), folder / "landed", RECORDS_PER_TRIGGER, is_adaptive=False
    )
    return job.JobContext(source, engine, rules(work), folder / "work")
