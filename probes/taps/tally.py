"""What a tap has done so far, in numbers: for people at intervals, for programs at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hopwatch.probes.taps.surroundings import Surroundings
from hopwatch.probes.values import Bad

TELL_EVERY_S: Final = 10.0


@dataclass(slots=True)
class Tally:
    """Messages stamped, and those that could not be, by reason."""

    stamped: int = 0
    bad: Counter[Bad] = field(default_factory=Counter)
    repeated: int = 0
    """Drops besides one for each bad message: those that may be of several minutes count in each of them."""
    told: str = ""
    """What was told of it last."""

    def summary(self, dropped: int) -> dict[str, object]:
        """Return it as ``--json`` shows it; ``dropped`` is what the probe had to drop, bad messages included."""
        return {"stamped": self.stamped, "bad": dict(sorted(self.bad.items())), "dropped": dropped - self.repeated}

    def __str__(self) -> str:
        """Return it in words."""
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.bad.items()))
        return f"{self.stamped:,} stamped, {self.bad.total():,} bad" + (f": {reasons}" if reasons else "")

    def tell(self, around: Surroundings) -> None:
        """Tell it in words, unless that was done."""
        if str(self) != self.told:
            self.told = str(self)
            around.tell(self.told)


class Teller:
    """Tells the tally every ten seconds, when it has changed."""

    def __init__(self, tally: Tally, around: Surroundings) -> None:
        """Begin to count the seconds."""
        self._tally, self._around = tally, around
        self._told_s = around.monotonic_s()
        self._start = str(tally)

    def look(self) -> None:
        """Tell what is due."""
        now_s = self._around.monotonic_s()
        if now_s - self._told_s < TELL_EVERY_S:
            return
        self._told_s = now_s
        if str(self._tally) != self._start:
            self._tally.tell(self._around)
