"""Tests of the webhooks of contracts: once told, always told, over failures, restarts and amendments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.api.contract_webhooks import events
from hopwatch.api.contract_webhooks.notifier import MAX_NEW, ContractNotifier, NotifiedContract
from hopwatch.monitor import settings as configuration
from hopwatch.monitor.errors import StoreError, TransportError
from hopwatch.monitor.lookup.completeness import ask_completeness
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.store import dialect, fencing, schema, told_spans
from hopwatch.monitor.store.dialect.lock import MemoryLock
from hopwatch.monitor.store.told_spans import ToldSpan, prune_told_spans
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.clock import ManualClock
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.examples import examples
from tests.support.results_topic import RUN
from tests.support.spool import START_US, STREAM_CONFIGS
from tests.support.workspace import CONFIGURATION, Workspace

CONTRACT = """
[alerts.channels.catalogue]
kind = "webhook"
url = "https://catalogue.example/x"
severities = []
[completeness.minutes]
stream = "orders"
over = "1m"
webhook = "catalogue"
"""
MINUTES = 4
Json = dict[str, Any]


class Fault(Enum):
    """Fault of the receiver."""

    BEFORE = "it does not take an event"
    AFTER = "it takes an event, and its answer is lost"


@dataclass
class MemoryReceiver:
    """Receiver that keeps what it took, with the keys."""

    events: list[tuple[str, Json]] = field(default_factory=list)
    fault: Fault | None = None
    is_closed: bool = False

    def post(self, body: bytes, idempotency_key: str, now_us: int) -> Outcome:
        """Take an event."""
        assert now_us
        if self.fault is not Fault.BEFORE:
            self.events.append((idempotency_key, json.loads(body)))
        return Failure("503: come back later") if self.fault else Accepted()

    def close(self) -> None:
        """Note that it was closed."""
        self.is_closed = True

    def list_states(self) -> list[str]:
        """Return the events in short: the minute, what it is, and what was told before."""
        return [f"{one['answer']['until'][14:16]} {one['event']} {one['answer']['state']}" for _, one in self.events]


@dataclass
class Place:
    """A store with windows, its configuration, and a receiver."""

    engine: Engine
    settings: configuration.Settings
    clock: ManualClock
    receiver: MemoryReceiver = field(default_factory=MemoryReceiver)

    def notifier(self, run: str = RUN, *, is_lineage: bool = False) -> ContractNotifier:
        """Return a notifier as each run has its own."""
        contract = NotifiedContract("minutes", "orders", WINDOW_US, self.receiver, is_lineage)
        return ContractNotifier(self.engine, self.settings, [contract], clock=self.clock, run=run, hold=MemoryLock())

    def write(self, minute: int, **fields: Any) -> None:  # noqa: ANN401 - fields of a window
        """Write a window of a minute."""
        write_conclusions(self.engine, build_conclusion(window(minute, **fields)))

    def ask(self, minute: int) -> ToldSpan:
        """Return the answer for a minute, as it is kept."""
        until_us = START_US + (minute + 1) * WINDOW_US
        answer = ask_completeness(self.engine, self.settings, "minutes", until_us, self.clock.now_us())
        return events.summarize_answer(until_us, answer)


def window(minute: int, **fields: Any) -> WindowResult:  # noqa: ANN401 - fields of a window
    """Return a window that is final and clean, unless told otherwise."""
    clean: Json = {"status": Status.FINAL, "verdict": Verdict.CLEAN, "known": 10, "lost_lower": 0, "lost_upper": 0}
    return replace(build_conclusion().result, window_start_us=START_US + minute * WINDOW_US, **clean | fields)


def drain(notifier: ContractNotifier) -> None:
    """Tell all that is to be told."""
    while notifier.publish_next():
        pass


@pytest.fixture
def place(engine: Engine, tmp_path: Path) -> Place:
    """Return a store that a run has, a minute before the first span ends."""
    file = Workspace(tmp_path).configure(CONFIGURATION + CONTRACT).config
    return Place(engine, configuration.load(file, flags={}, environ={}), ManualClock(START_US + WINDOW_US))


def test_a_complete_span_is_told_once(place: Place) -> None:
    """The event comes with the decision, and not again while nothing changes; spans before the first look have none."""
    place.write(0)
    place.clock.advance(60)
    notifier = place.notifier()
    drain(notifier)
    assert place.receiver.events == []
    place.write(1)
    drain(notifier)
    drain(place.notifier())
    ((key, event),) = place.receiver.events
    assert place.receiver.list_states() == ["02 complete complete"]
    assert event["before"] is None
    assert event["answer"]["contract"] == "minutes"
    assert key == "/minutes/2026-01-01T00:02:00Z#complete-0-10-0-0-0"


def test_a_span_that_fails_is_told(place: Place) -> None:
    """And that it is complete after all, when an amendment made it so, with what was told before."""
    notifier = place.notifier()
    place.write(0, verdict=Verdict.LOSSY, lost_lower=2, lost_upper=2)
    drain(notifier)
    place.write(0, status=Status.AMENDED, revision=1)
    drain(notifier)
    assert place.receiver.list_states() == ["01 failed failed", "01 amended complete"]
    assert place.receiver.events[1][1]["before"] == {
        "until": "2026-01-01T00:01:00Z", "state": "failed", "revisions": 0, "known": 10, "lost_lower": 2,
        "lost_upper": 2, "in_flight": 0,
    }  # fmt: skip


def test_what_was_complete_and_is_amended_is_told(place: Place) -> None:
    """Also where it stays complete with other counts; a write that changes nothing is not told."""
    notifier = place.notifier()
    place.write(0)
    drain(notifier)
    place.write(0, status=Status.AMENDED, revision=1, known=12)
    drain(notifier)
    place.write(0, status=Status.AMENDED, revision=1, known=12)
    drain(notifier)
    place.write(0, status=Status.AMENDED, revision=2, known=12, verdict=Verdict.LOSSY, lost_lower=1, lost_upper=1)
    drain(notifier)
    assert place.receiver.list_states() == ["01 complete complete", "01 amended complete", "01 amended failed"]


def test_spans_of_a_pause_are_told_afterwards(place: Place) -> None:
    """In their order; of a pause that is longer than a bound the last ones."""
    drain(place.notifier())
    for minute in range(3):
        place.write(minute)
    place.clock.advance(120)
    drain(place.notifier())
    assert place.receiver.list_states() == [f"0{minute} complete complete" for minute in (1, 2, 3)]
    place.clock.advance(60 * (MAX_NEW + 5))
    notifier = place.notifier()
    notifier.publish_next()
    with schema.open_snapshot(place.engine) as connection:
        pending = told_spans.read_pending(connection, "minutes", 2 * MAX_NEW)
    assert len(pending) == MAX_NEW + 1
    assert pending[-1].until_us == place.clock.now_us() // WINDOW_US * WINDOW_US


@pytest.mark.parametrize("fault", Fault)
def test_what_was_not_taken_is_sent_again_with_the_same_key(place: Place, fault: Fault) -> None:
    """Also where the answer of the receiver alone was lost."""
    notifier = place.notifier()
    place.write(0)
    place.receiver.fault = fault
    with pytest.raises(TransportError, match="contract minutes: 503: come back later"):
        notifier.publish_next()
    place.receiver.fault = None
    drain(place.notifier())
    assert len(place.receiver.events) == (2 if fault is Fault.AFTER else 1)
    assert len({key for key, _ in place.receiver.events}) == 1


def test_a_receiver_that_fails_holds_up_no_other(place: Place) -> None:
    """Each contract goes on by itself."""
    other = MemoryReceiver(fault=Fault.BEFORE)
    both = [NotifiedContract("minutes", "orders", WINDOW_US, one) for one in (place.receiver,)]
    settings = place.settings.model_copy(
        update={"completeness": {**place.settings.completeness, "a": place.settings.completeness["minutes"]}}
    )
    contracts = [NotifiedContract("a", "orders", WINDOW_US, other), *both]
    notifier = ContractNotifier(place.engine, settings, contracts, clock=place.clock, run=RUN, hold=MemoryLock())
    place.write(0)
    with pytest.raises(TransportError, match="contract a: 503"):
        notifier.publish_next()
    assert place.receiver.list_states() == ["01 complete complete"]
    notifier.close()
    assert other.is_closed
    assert place.receiver.is_closed


def test_a_path_without_the_node_is_told_in_the_log(place: Place) -> None:
    """A contract that cannot be answered fails as a receiver does, with what to do; nothing is lost."""
    contract = place.settings.completeness["minutes"].model_copy(update={"nodes": ("c",)})
    place.settings = place.settings.model_copy(update={"completeness": {"minutes": contract}})
    place.write(0)
    with pytest.raises(TransportError, match="the path that the store of orders was made by has no node c"):
        place.notifier().publish_next()


def test_who_has_lost_the_store_tells_nothing(place: Place, tmp_path: Path) -> None:
    """Another run has it, and tells."""
    notifier = place.notifier()
    drain(notifier)
    fencing.claim_store(place.engine, tmp_path / "nothing", STREAM_CONFIGS, "", "another")
    place.write(0)
    with pytest.raises(StoreError, match="another monitor has taken the store"):
        notifier.publish_next()
    with pytest.raises(StoreError, match="another monitor has taken the store"):
        notifier.publish_next()


def test_old_spans_are_pruned_once_they_were_told(place: Place) -> None:
    """Those of which nothing was told yet stay."""
    notifier = place.notifier()
    place.write(0)
    drain(notifier)
    place.clock.advance(60)
    drain(notifier)
    with place.engine.execution_options(writes=True).begin() as connection:
        assert prune_told_spans(connection, START_US + 10 * WINDOW_US) == 1
        assert told_spans.read_last_end(connection, "minutes") == START_US + 2 * WINDOW_US


def test_an_event_of_openlineage_has_a_run_for_each_answer(place: Place) -> None:
    """COMPLETE for what is complete, FAIL for what is not, with the messages as rows and the contract as assertions."""
    notifier = place.notifier(is_lineage=True)
    place.write(0)
    drain(notifier)
    place.write(0, status=Status.AMENDED, revision=1, verdict=Verdict.LOSSY, lost_lower=1, lost_upper=1)
    drain(notifier)
    (_, first), (_, second) = place.receiver.events
    assert (first["eventType"], second["eventType"]) == ("COMPLETE", "FAIL")
    assert first["run"]["runId"] != second["run"]["runId"]
    assert first["job"] == {"namespace": "hopwatch", "name": "completeness.minutes"}
    (dataset,) = first["inputs"]
    assert dataset["name"] == "orders"
    assert dataset["inputFacets"]["dataQualityMetrics"]["rowCount"] == 10
    told = [one["success"] for one in second["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]]
    assert told == [False, False]


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"), st.integers(0, MINUTES - 1), st.sampled_from(("clean", "lossy", "unknown", "open"))
        ),
        st.tuples(st.just("look"), st.none() | st.sampled_from(Fault), st.just("")),
        st.tuples(st.just("restart"), st.just(0), st.just("")),
        st.tuples(st.just("minute"), st.just(0), st.just("")),
    ),
    max_size=20,
)
KINDS: dict[str, Json] = {
    "clean": {},
    "lossy": {"verdict": Verdict.LOSSY, "lost_lower": 1, "lost_upper": 3},
    "unknown": {"verdict": Verdict.UNKNOWN, "lost_lower": 0, "lost_upper": None},
    "open": {"status": Status.PROVISIONAL, "verdict": None},
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(steps=STEPS)
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_whoever_was_told_is_told(place: Place, tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """Over failures, restarts and amendments: what a receiver was told last of a span is what is so."""
    folder = tmp_path_factory.mktemp("law")
    engine = dialect.create_engine(f"sqlite:///{folder}/store.db")
    schema.prepare_store(engine)
    fencing.claim_store(engine, folder / "nothing", STREAM_CONFIGS, "", RUN)
    made = Place(engine, place.settings, ManualClock(START_US + WINDOW_US))
    notifier, revisions = made.notifier(), dict.fromkeys(range(MINUTES), 0)
    drain(notifier)
    for what, which, kind in steps:
        if what == "write":
            made.write(which, revision=revisions[which], **KINDS[kind])
            revisions[which] += 1
        elif what == "look":
            made.receiver.fault = which
            try:
                drain(notifier)
            except TransportError:
                assert which
        elif what == "restart":
            notifier = made.notifier()
        else:
            made.clock.advance(60)
    made.receiver.fault = None
    drain(notifier)
    last, keys = dict[str, ToldSpan](), dict[str, list[str]]()
    for key, event in made.receiver.events:
        until = event["answer"]["until"]
        if key not in keys.setdefault(until, []):
            assert (event["event"] == "amended") == bool(keys[until])
        keys[until].append(key)
        last[until] = events.summarize_answer(0, event["answer"])
    for minute in range((made.clock.now_us() - START_US) // WINDOW_US):
        now = made.ask(minute)
        until = f"2026-01-01T00:{minute + 1:02}:00Z"
        assert until in last or now.state == "pending"
        if until in last:
            assert last[until] == now._replace(until_us=0)
    engine.dispose()
