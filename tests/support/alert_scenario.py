"""A small language of time: push at minute 1, want between 2 and 2.5; whatever else is said is a failure.

Minutes are counted from the first window, on the clock of arrivals; a micro-batch ends every ten seconds. Windows live
by a transit and a settle of zero, so that minute 1 is final at 2.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from hopwatch.alerts import rule_config
from hopwatch.alerts.decision.evaluation import AlertSnapshot, evaluate
from hopwatch.alerts.decision.inputs import WindowInput
from hopwatch.alerts.decision.rules import AlertRules
from hopwatch.alerts.events import Notification
from hopwatch.monitor.results import Status
from hopwatch.monitor.settings import DEFAULTS, Settings
from tests.support.windows import Memory, at, window_input

BATCHES_PER_MINUTE: Final = 6
FIRING, RESOLVED = "firing", "resolved"


class Want(NamedTuple):
    """Something that has to be said after one moment and no later than another."""

    after: float
    before: float
    event: str
    key: str
    by: str = ""


def build_rules(text: str = "", streams: tuple[str, ...] = ("orders",), path: str = "a -> b") -> AlertRules:
    """Return the rules of a configuration: its ``[alerts]`` as TOML, and streams that live by the clock of a play."""
    stream = {"path": path, "transit": "0s", "settle": "0s"}
    return rule_config.build_rules(
        Settings({"streams": dict.fromkeys(streams, stream)} | tomllib.loads(text), DEFAULTS)
    )


@dataclass
class Play:
    """Pushes and wants; :meth:`run` holds them against each other."""

    rules: AlertRules = field(default_factory=build_rules)
    due: list[tuple[float, WindowInput]] = field(default_factory=list)
    wants: list[Want] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    snapshot: AlertSnapshot = field(default_factory=AlertSnapshot)
    said: list[tuple[float, Notification]] = field(default_factory=list)

    def push(self, first: int, last: int | None = None, **fields: Any) -> Self:  # noqa: ANN401 - the fields of a window
        """Let the windows from the first minute to the last be so; each is final when it ends."""
        for minute in range(first, (first if last is None else last) + 1):
            self.due.append((minute + 1, window_input(minute, **fields)))
        return self

    def amend(self, when: float, minute: int, **fields: Any) -> Self:  # noqa: ANN401 - the fields of a window
        """Let a window be judged anew at a moment."""
        self.due.append((when, window_input(minute, status=Status.AMENDED, revision=1, **fields)))
        return self

    def set_aside(self, *moments: float) -> Self:
        """Let records arrive that cannot be read."""
        self.memory.arrivals_us += [at(moment) for moment in moments]
        return self

    def want(self, after: float, before: float, event: str, key: str, by: str = "") -> Self:
        """Want to be told of an incident after one moment and no later than another; ``by`` which channel, if any."""
        self.wants.append(Want(after, before, event, key, by))
        return self

    def run(self, until: float, begin: float = 0) -> Self:
        """Play, and check that all that was wanted is said, and nothing else; heartbeats go without saying."""
        for number in range(round(begin * BATCHES_PER_MINUTE), round(until * BATCHES_PER_MINUTE) + 1):
            self.step(number / BATCHES_PER_MINUTE)
        left = list(self.wants)
        for moment, by, one in self.heard():
            if one.kind == "heartbeat":
                continue
            told = one.event, one.key, by
            met = [w for w in left if (w.event, w.key, w.by) == told and w.after <= moment <= w.before]
            assert met, f"at {moment:.2f} unwanted: {by} {one.event} {one.key}: {one.summary}"
            left.remove(met[0])
        assert not left, f"not said: {left}"
        return self

    def heard(self) -> Iterable[tuple[float, str, Notification]]:
        """Return what was said: when, by which channel, and what."""
        return [(moment, "", one) for moment, one in self.said if one.is_news]

    def step(self, moment: float) -> None:
        """End one micro-batch at a moment."""
        now = [minute for when, minute in self.due if when <= moment]
        self.due = [(when, minute) for when, minute in self.due if when > moment]
        for minute in now:
            self.memory.count(minute)
        decision = evaluate(self.rules, now, self.snapshot, at(moment), self.memory)
        self.snapshot = decision.snapshot
        self.said += [(moment, one) for one in decision.notifications]

    def told(self, key: str) -> Notification:
        """Return what was said last of an incident."""
        return next(one for _, one in reversed(self.said) if one.key == key)
