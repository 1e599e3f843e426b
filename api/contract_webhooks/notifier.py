"""Notifier of contracts: tells each webhook of a span once it is decided, and again whenever the answer changes.

Each span of a contract, such as an hour, has a row in the store with what was told of it last. A span without a
decision is asked for again at each look; one that was told of, only when one of its windows was written: what is
complete stays so unless a window is amended. At least once, and in the order of the answers of a span: what was not
accepted is sent again, with the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from sqlalchemy import Connection, Engine

from hopwatch.alerts.channels.channel import Accepted, Outcome
from hopwatch.alerts.delivery.store_writer import StoreWriter
from hopwatch.api.contract_webhooks import events
from hopwatch.monitor.accounting.completeness_answer import Json
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.lookup.completeness import answer_contract, find_last_end_us
from hopwatch.monitor.store import fencing, schema, told_spans
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.told_spans import ToldSpan
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MAX_PENDING: Final = 100
"""Spans without a decision that are asked for at one look, the oldest."""
MAX_NEW: Final = 10_000
"""Spans that a contract may get at one look: of a longer pause the last ones."""


class EventReceiver(Protocol):
    """Webhook that events are posted to."""

    def post(self, body: bytes, idempotency_key: str, now_us: int) -> Outcome:
        """Post a JSON body with its key; ``now_us`` is the wall clock. Never raises, ends within its deadline."""

    def close(self) -> None:
        """Close the connections; never raises."""


@dataclass(frozen=True, slots=True)
class NotifiedContract:
    """Contract of the configuration with the webhook that is told of it, and in which form."""

    name: str
    stream: str
    over_us: int
    receiver: EventReceiver
    is_lineage: bool = False


class ContractNotifier:
    """Tells the webhooks of contracts what the store holds; one thread at a time calls it."""

    def __init__(  # noqa: PLR0913 - the store, the right to it, and who is told
        self,
        engine: Engine,
        settings: Settings,
        contracts: Iterable[NotifiedContract],
        *,
        clock: Clock,
        run: str,
        hold: StoreLock,
    ) -> None:
        """Tell of the store of ``engine``, while it is that of ``run`` and this monitor has ``hold``."""
        self._engine, self._settings, self._contracts = engine, settings, tuple(contracts)
        self._clock, self._run = clock, run
        self._store_writer = StoreWriter(engine, clock, hold)

    def publish_next(self) -> int:
        """Tell each webhook what it has to be told; return how many events were accepted.

        Raises:
            TransportError: a webhook does not take an event now; the others were told, and nothing is lost.
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        count, failures = 0, dict[str, str]()
        for one in self._contracts:
            try:
                count += self._tell(one)
            except (ConfigurationError, TransportError) as error:
                failures[one.name] = str(error)
        if failures:
            raise TransportError("; ".join(f"contract {name}: {why}" for name, why in failures.items()))
        return count

    def close(self) -> None:
        """Close all webhooks."""
        for one in self._contracts:
            one.receiver.close()

    def _tell(self, one: NotifiedContract) -> int:
        self._add_spans(one)
        with schema.open_snapshot(self._engine) as connection:
            position = told_spans.read_position(connection, one.name) or 0
            written = told_spans.read_written_spans(connection, one.stream, one.over_us, position)
            spans = sorted(
                {
                    *told_spans.read_spans(connection, one.name, written.ends_us),
                    *told_spans.read_pending(connection, one.name, MAX_PENDING),
                }
            )
            answers = [answer_contract(connection, self._settings, one.name, span.until_us) for span in spans]
        count = 0
        for span, answer in zip(spans, answers, strict=True):
            told = events.summarize_answer(span.until_us, answer)
            if not events.must_be_told(span, told):
                continue
            self._post(one, answer, span)
            self._write(partial(told_spans.save_told, contract=one.name, span=told, told_us=self._clock.now_us()))
            count += 1
        if written.position != position:
            self._write(partial(told_spans.save_position, contract=one.name, position=written.position))
        return count

    def _add_spans(self, one: NotifiedContract) -> None:
        """Add the spans that have ended since the last look; at the first look the last one that has."""
        last_us = find_last_end_us(one.over_us, self._clock.now_us() // WINDOW_US * WINDOW_US)
        with schema.open_snapshot(self._engine) as connection:
            known_us = told_spans.read_last_end(connection, one.name)
            is_first = told_spans.read_position(connection, one.name) is None
        first_us = last_us if known_us is None else known_us // one.over_us * one.over_us + one.over_us
        ends_us = range(max(first_us, last_us - MAX_NEW * one.over_us), last_us + 1, one.over_us)

        def save(connection: Connection) -> None:
            told_spans.add_spans(connection, one.name, ends_us)
            if is_first:
                told_spans.save_position(connection, one.name, told_spans.read_last_write(connection))

        if ends_us or is_first:
            self._write(save)

    def _post(self, one: NotifiedContract, answer: Json, before: ToldSpan) -> None:
        now_us, installation = self._clock.now_us(), self._settings.alerts.installation
        body = (
            events.build_lineage_event(answer, installation, now_us)
            if one.is_lineage
            else events.build_event(answer, before, installation)
        )
        outcome = one.receiver.post(body, events.build_key(answer, installation), now_us)
        if not isinstance(outcome, Accepted):
            raise TransportError(outcome.why)

    def _write(self, work: Callable[[Connection], None]) -> None:
        """Write in a transaction of its own, while the store is that of this run."""

        def write() -> None:
            with fencing.open_run_change(self._engine, self._run) as connection:
                work(connection)

        self._store_writer.write(write)
