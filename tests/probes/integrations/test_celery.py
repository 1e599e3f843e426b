"""Tasks of Celery are stamped by its own signals, of a worker in this process and a broker in memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, signals
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Ignore, Reject, Retry

from hopwatch.integrations.celery import instrument
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.integrations.celery import TaskStamper
from hopwatch.probes.message_headers import TIME_HEADER
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import MemorySink, Observation, id_bytes
from servers.process import until

SIGNALS = (
    signals.setup_logging,
    signals.before_task_publish,
    signals.after_task_publish,
    signals.worker_init,
    signals.task_received,
    signals.task_prerun,
    signals.task_postrun,
    signals.task_revoked,
    signals.worker_process_shutdown,
    signals.worker_shutdown,
)
TASK = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave Celery's signals as they were."""
    _keep_signals(monkeypatch)


def _keep_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    for signal in SIGNALS:
        monkeypatch.setattr(signal, "receivers", list(signal.receivers))
        signal.sender_receivers_cache.clear()
    # A worker takes all handlers from the root logger, unless somebody else sets up logging.
    signals.setup_logging.connect(lambda **_: None, weak=False)


def instrument_into(sink: MemorySink) -> TaskStamper:
    """Stamp the tasks of this process into a sink."""
    return instrument(stream="tasks", publisher="shop", worker="worker", sink=sink)


@pytest.fixture
def stamper(sink: MemorySink) -> Iterator[TaskStamper]:
    """Yield what stamps the tasks of this process."""
    stamper = instrument_into(sink)
    yield stamper
    stamper.close()


@pytest.fixture(scope="module")
def app() -> Celery:
    """Return an app with a task that ends as it is told to."""
    app = Celery("shop", broker="memory://", set_as_current=False)

    @app.task(name="work", bind=True, max_retries=3)  # type: ignore[untyped-decorator]
    def work(self: Any, how: str) -> None:  # noqa: ANN401 - a task
        ends: dict[str, Callable[[], BaseException]] = {
            "fails": lambda: ValueError("broken"),
            "ignores": Ignore,
            "rejects": Reject,
        }
        if how == "retries" and not self.request.retries:
            raise self.retry(countdown=0)
        if how in ends:
            error = ends[how]()
            raise error

    return app


def work_off(app: Celery, ends: int) -> None:
    """Have a worker run what was published, until so many runs have ended."""
    done: list[object] = []
    signals.task_postrun.connect(lambda **said: done.append(said["state"]), weak=False)
    signals.task_revoked.connect(lambda **_: done.append("REVOKED"), weak=False)
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30):
        until(lambda: len(done) >= ends, "all tasks")


def stamps(sink: MemorySink, node: str) -> list[Observation]:
    """Return what was observed at a node."""
    batches = [decode(record) for record in sink.records]
    return [seen for batch in batches if batch.node == node for seen in batch_observations(batch)]


def causes(sink: MemorySink) -> set[str]:
    """Return the causes of drops."""
    return {drop.cause for record in sink.records for drop in decode(record).drops}


def describe(seen: list[Observation], task_id: str) -> set[tuple[str, str | None, bool, bool]]:
    """Return outcome and reason of the observations of a task, and whether they have ``in`` and ``out``."""
    return {
        (Outcome(one.outcome).name, one.reason, one.in_us is not None, one.out_us is not None)
        for one in seen
        if one.message_id == id_bytes(task_id)
    }


@pytest.fixture(scope="module")
def worked(app: Celery) -> MemorySink:
    """Return the stamps of tasks that a worker has run, each with its end as its id."""
    sink = MemorySink()
    with pytest.MonkeyPatch.context() as monkeypatch:
        _keep_signals(monkeypatch)
        stamper = instrument_into(sink)
        for how in ("succeeds", "fails", "ignores", "rejects", "retries"):
            app.send_task("work", args=(how,), task_id=how)
        app.send_task("work", args=("succeeds",), task_id=TASK)
        app.send_task("work", args=("succeeds",), task_id="waits", countdown=1)
        app.send_task("work", args=("succeeds",), task_id="expires", expires=datetime.now(UTC) - timedelta(seconds=5))
        app.send_task("work", args=("succeeds",), task_id="spoiled", headers={TIME_HEADER: "yesterday"})
        work_off(app, 10)
        stamper.close()
    return sink


@pytest.mark.parametrize(
    ("task_id", "expected"),
    [
        ("succeeds", {("PASSED", None, True, True)}),
        ("ignores", {("PASSED", None, True, True)}),
        ("fails", {("PASSED", None, True, False), ("REJECTED", "ValueError", False, False)}),
        ("rejects", {("PASSED", None, True, False), ("REJECTED", "Reject", False, False)}),
        ("retries", {("PASSED", None, True, True), ("DEFERRED", "retry", True, False)}),
        ("waits", {("PASSED", None, False, True), ("DEFERRED", "eta", True, False)}),
        ("expires", {("REJECTED", "expired", True, False)}),
        ("spoiled", set()),
    ],
)
def test_each_end_of_a_task_is_told(task_id: str, expected: set[object], worked: MemorySink) -> None:
    """A task that is tried again, or waits for an ETA, is sent once and taken in once."""
    assert describe(stamps(worked, "worker"), task_id) == expected
    sent = [one for one in stamps(worked, "shop") if one.message_id == id_bytes(task_id)]
    assert len(sent) == (task_id != "spoiled")


def test_a_task_has_one_id_and_one_event_time(worked: MemorySink) -> None:
    """A UUID stays one."""
    found = {(one.message_id, one.event_us) for node in ("shop", "worker") for one in stamps(worked, node)}
    assert len(found) == 8
    assert uuid.UUID(TASK).bytes in {message_id for message_id, _ in found}


def test_a_task_with_an_eta_waits_for_ten_minutes_more(worked: MemorySink) -> None:
    """Others may be before it in the queue of its worker."""
    (waiting,) = [
        one for one in stamps(worked, "worker") if one.message_id == id_bytes("waits") and one.until_us is not None
    ]
    assert waiting.until_us is not None
    assert 600_900_000 <= waiting.until_us - waiting.event_us <= 602_000_000


def test_a_spoiled_event_time_is_counted(worked: MemorySink) -> None:
    """Nothing is raised into publisher or worker, and what is missing is unknown."""
    assert causes(worked) == {"bad marks"}


def test_a_process_that_only_publishes_is_no_worker(app: Celery, stamper: TaskStamper, sink: MemorySink) -> None:
    """An instance there would say that all is well where no worker is alive."""
    app.send_task("work", args=("succeeds",))
    stamper.close()
    assert {decode(record).node for record in sink.records} == {"shop"}


def test_tasks_of_celery_itself_are_not_stamped(app: Celery, stamper: TaskStamper, sink: MemorySink) -> None:
    """Such as those that wait for the parts of a chord."""
    app.send_task("celery.backend_cleanup")
    stamper.close()
    assert sink.records == []


@pytest.mark.parametrize(("ignores", "expected"), [(False, {"unmarked message"}), (True, set())])
def test_tasks_of_other_publishers_are_missed(
    ignores: bool,  # noqa: FBT001 - a parameter
    expected: set[str],
    app: Celery,
    sink: MemorySink,
) -> None:
    """A task without an event time counts as dropped, unless such tasks are ignored."""
    app.control.purge()
    app.send_task("work", args=("succeeds",))
    stamper = instrument(stream="tasks", publisher="shop", worker="worker", sink=sink, ignore_unmarked=ignores)
    work_off(app, 1)
    stamper.close()
    assert causes(sink) == expected
    assert stamps(sink, "worker") == []


def test_a_task_that_is_called_as_a_function_is_not_stamped(
    app: Celery, stamper: TaskStamper, sink: MemorySink
) -> None:
    """No broker has seen it."""
    app.tasks["work"]("succeeds")
    app.tasks["work"].apply(args=("succeeds",))
    stamper.close()
    assert sink.records == []


@pytest.mark.parametrize("form", ["whole", "part", "moment", "none"])
def test_a_retry_waits_for_seconds_or_a_moment(form: str, stamper: TaskStamper, sink: MemorySink) -> None:
    """As the exception says."""
    now = datetime.now(UTC)
    when: Any = {"whole": 30, "part": 30.0, "moment": now + timedelta(seconds=30), "none": None}[form]
    event_us = int(now.timestamp() * 1e6)
    request = {"id": TASK, TIME_HEADER: str(event_us)}
    context = SimpleNamespace(get=request.get, is_eager=False, called_directly=False)
    signals.task_postrun.send(
        sender="work", task=SimpleNamespace(name="work", request=context), state="RETRY", retval=Retry(when=when)
    )
    stamper.close()
    (seen,) = stamps(sink, "worker")
    assert seen.until_us is not None
    waits_s = 600 if form == "none" else 630
    assert waits_s - 0.001 <= (seen.until_us - event_us) / 1e6 <= waits_s + 5


def test_a_task_without_an_id_is_counted(stamper: TaskStamper, sink: MemorySink) -> None:
    """Protocol 1 of Celery has the id elsewhere; a header of its publisher cannot be stamped."""
    headers: dict[str, object] = {}
    signals.before_task_publish.send(sender="work", headers=headers)
    signals.after_task_publish.send(sender="work", headers=headers)
    stamper.close()
    assert causes(sink) == {"bad marks"}
