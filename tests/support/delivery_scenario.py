"""The small language of time, up to the receivers: what happens when, and what they hear between when and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.events import Notification
from hopwatch.alerts.storage import alert_state, outbox
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.alert_scenario import Play
from tests.support.channel import Receiver, Spell
from tests.support.clock import ManualClock
from tests.support.windows import START_US, at


@dataclass
class Post(Play):
    """A play whose notifications go through a store and a dispatcher to receivers; ``routes`` are theirs."""

    engine: Engine = field(kw_only=True)
    routes: tuple[str, ...] = ("pager",)
    fallbacks: dict[str, str] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START_US))
    receivers: dict[str, Receiver] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set up a receiver for every name."""
        self.receivers = {name: Receiver(self.clock) for name in (*self.routes, *self.fallbacks.values())}
        ways = Routing(self.receivers, lambda _: self.routes, self.fallbacks)
        self.dispatcher = Dispatcher(self.engine, ways, self.clock)

    @property
    def pager(self) -> Receiver:
        """The first channel's receiver."""
        return self.receivers[self.routes[0]]

    def answer(
        self,
        after: float,
        before: float,
        outcome: Outcome,
        *,
        by: str = "pager",
        takes_s: float = 0.0,
        is_heard: bool = False,
    ) -> Self:
        """Let a receiver answer so from one minute to another."""
        self.receivers[by].spells.append(Spell(at(after), at(before), outcome, takes_s, is_heard))
        return self

    def want(self, after: float, before: float, event: str, key: str, by: str = "pager") -> Self:
        """Want a person to hear of an incident after one moment and no later than another."""
        return super().want(after, before, event, key, by)

    def heard(self) -> Iterable[tuple[float, str, Notification]]:
        """Return what people got to know: when, by which channel, and what."""
        for name, receiver in self.receivers.items():
            for now_us, delivery in receiver.told:
                yield (now_us - START_US) / WINDOW_US, name, delivery.notification

    def step(self, moment: float) -> None:
        """End one micro-batch at a moment, in the store, and carry what is due."""
        before, said = self.snapshot, len(self.said)
        super().step(moment)
        news = [one for _, one in self.said[said:]]
        with self.engine.execution_options(writes=True).begin() as connection:
            alert_state.write_snapshot(connection, before, self.snapshot)
            outbox.enqueue(connection, news, [self.routes for _ in news])
        self.carry(moment)

    def carry(self, moment: float) -> None:
        """Carry what is due at a moment, unless a receiver that hangs has taken longer already."""
        self.clock.advance(max(0.0, (at(moment) - self.clock.now_us()) / 1e6))
        while self.dispatcher.deliver_due():
            pass
