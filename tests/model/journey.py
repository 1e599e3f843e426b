"""Messages on their way through a pathway: what really happens to them, and which probe instance sees what."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.model.pathway import Pathway
from tests.model.probe_instances import Life, Stamped
from tests.model.random_choices import MINUTE_US, SECOND_US, Dice, Fault
from tests.model.record import DEFERRED, FILTERED, PASSED, REJECTED, Observation
from tests.model.shapes import Ids, reason

_YEAR_2099_US = 4_070_908_800_000_000


@dataclass(slots=True)
class Truth:
    """Truth about the messages of one stream, whatever the probes saw; ids by window start in µs."""

    lost_at: dict[tuple[int, str], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    visits: dict[int, list[tuple[str, Observation]]] = field(default_factory=lambda: defaultdict(list))
    """What a probe at each node would have observed that misses nothing, by window start in µs."""
    came_us: dict[tuple[int, str, bytes], int] = field(default_factory=dict)
    """When a message came to a node for the first time, by window start in µs, node and id."""
    done_us: dict[tuple[int, str, bytes], int] = field(default_factory=dict)
    """When a node was done with it for the first time: it left, or was stopped."""

    def lost(self, window_us: int) -> set[bytes]:
        """Give what was lost somewhere, on whichever of its ways."""
        return set[bytes]().union(*(ids for (window, _node), ids in self.lost_at.items() if window == window_us))


@dataclass(frozen=True, slots=True)
class Message:
    """Its id and its event time, µs since 1970."""

    message_id: bytes
    event_us: int

    @property
    def window_us(self) -> int:
        """Start of its window."""
        return self.event_us // MINUTE_US * MINUTE_US


class Journey:
    """Sends messages through the pathway and has them stamped by the lives of each node."""

    def __init__(
        self,
        dice: Dice,
        pathway: Pathway,
        lives: Mapping[str, Sequence[Life]],
        counting: frozenset[str] = frozenset(),
    ) -> None:
        """Start with nothing lost; `counting` are the nodes that know no ids."""
        self.counting = counting
        self.dice, self.pathway, self.lives = dice, pathway, lives
        self.truth = Truth()
        self._ids = Ids(dice)

    def send(self, start_us: int, windows: Sequence[int]) -> None:
        """Make one message in one of those minutes after the start, and send it through."""
        made_us = start_us + self.dice.one(windows) * MINUTE_US + self.dice.moment(0, MINUTE_US - 1)
        event_us = made_us
        if self.dice.hit(Fault.LATE_EVENTS, 0.15):
            event_us -= self.dice.moment(0, self.dice.one((5, 20, 70)) * MINUTE_US)
        if self.dice.hit(Fault.LYING_EVENTS, 0.03):
            event_us = self.dice.one((0, -MINUTE_US, _YEAR_2099_US, made_us + 5 * MINUTE_US, made_us + 6 * MINUTE_US))
        message = Message(self._ids.new(event_us), event_us)
        origin = self.dice.one(self.pathway.origins)
        self._handle(message, origin, made_us + self._delay_us(), origin)

    def _delay_us(self) -> int:
        return self.dice.moment(0, self.dice.one((1000, 100_000, 2 * SECOND_US)))

    def _handle(self, message: Message, node: str, at_us: int, loses: str) -> None:
        """Bring a message to a node; `loses` is the node that answers for the way there."""
        lives = [life for life in self.lives[node] if life.start_us <= at_us <= life.stop_us]
        crashed = any(life.stop_us < at_us and not life.says_bye for life in self.lives[node])
        is_origin = node in self.pathway.origins
        if (not lives and not crashed) or (not is_origin and self.dice.hit(Fault.LOST, 0.05)):
            self._lose(message, loses)
            return
        life = self.dice.one(lives) if lives and not self.dice.hit(Fault.UNOBSERVED, 0.05) else None
        for _ in range(2 if self.dice.hit(Fault.REPEATED, 0.08) else 1):
            self._visit(message, node, at_us, life)

    def _visit(self, message: Message, node: str, at_us: int, life: Life | None) -> None:
        one_sided = node in self.pathway.one_sided
        if not one_sided and node not in self.counting and self.dice.hit(Fault.DEFERRED, 0.2):
            self._defer(message, node, at_us, life)
        elif self.dice.hit(Fault.STOPPED_BY_COUNT if node in self.counting else Fault.STOPPED, 0.08):
            self._stop(message, node, at_us, life)
        elif not one_sided and self.dice.hit(Fault.LOST, 0.04):
            self._note(message, Observation(message.message_id, 0, None), node, (at_us, None))
            self._stamp(message, at_us, None, life)
            self._lose(message, node)
        else:
            left_us = at_us + self._delay_us()
            if life is not None and life.says_bye:
                left_us = min(left_us, life.stop_us)
            self._note(message, Observation(message.message_id, 0, 0), node, (at_us, left_us))
            came, left = self._sides(node)
            self._stamp(message, at_us if came else None, left_us if left else None, life)
            self._leave(message, node, left_us)

    def _defer(self, message: Message, node: str, at_us: int, life: Life | None) -> None:
        """Have a node keep a message until a moment, or before it: for another instance, if its own has ended."""
        self._note(message, Observation(message.message_id, 0, None, DEFERRED), node, (at_us, None))
        if self.dice.rng.random() < 0.5:
            self._stamp(message, at_us, None, life)
        until_us = at_us + self.dice.moment(1, self.dice.one((5, 60, 600)) * SECOND_US)
        if life is not None and at_us <= life.stop_us:
            came_us, left_us = self.dice.one(((at_us, None), (None, None)))
            told = (*self._told(message), came_us, left_us, DEFERRED, reason(self.dice), until_us)
            life.stamp(Stamped(at_us, *told), apart=False)
        next_us = self.dice.moment(at_us, until_us)
        lives = [one for one in self.lives[node] if one.start_us <= next_us <= one.stop_us]
        fate = self.dice.one(("delivered", "delivered", "rejected", "deferred", "never"))
        if fate == "never" or not lives:
            self._lose(message, node)
            return
        later = self.dice.one(lives) if life is not None else None
        if fate == "deferred":
            self._defer(message, node, next_us, later)
        elif fate == "rejected":
            self._stop(message, node, next_us, later)
        else:
            self._note(message, Observation(message.message_id, None, 0), node, (next_us, next_us))
            self._stamp(message, None, next_us, later)
            self._leave(message, node, next_us)

    def _sides(self, node: str) -> tuple[bool, bool]:
        """Say which of the two stamps the probe makes of what passes."""
        if node in self.pathway.one_sided:
            return self.dice.one(((True, False), (False, True), (True, True)))
        if self.dice.hit(Fault.UNOBSERVED, 0.05):
            return self.dice.one(((True, False), (False, True)))
        return True, True

    def _stop(self, message: Message, node: str, at_us: int, life: Life | None) -> None:
        outcome = self.dice.one((FILTERED, REJECTED))
        self._note(message, Observation(message.message_id, 0, None, outcome), node, (at_us, at_us))
        came_us, left_us = self.dice.one(((at_us, None), (at_us, None), (None, None), (at_us, at_us), (None, at_us)))
        if life is not None:
            life.stamp(Stamped(at_us, *self._told(message), came_us, left_us, outcome, reason(self.dice)), apart=False)

    def _stamp(self, message: Message, came_us: int | None, left_us: int | None, life: Life | None) -> None:
        """Have a passing message stamped; what comes after the end of a life it does not see."""
        if life is None:
            return
        came_us = None if came_us is None or came_us > life.stop_us else came_us
        left_us = None if left_us is None or left_us > life.stop_us else left_us
        moments = [moment for moment in (came_us, left_us) if moment is not None]
        if moments:
            stamped = Stamped(max(moments), *self._told(message), came_us, left_us, PASSED)
            life.stamp(stamped, apart=self.dice.hit(Fault.SPLIT, 0.4))

    def _told(self, message: Message) -> tuple[bytes, int]:
        """Give id and event time as this hop tells them."""
        moved_us = self.dice.one((-MINUTE_US, MINUTE_US, 1)) if self.dice.hit(Fault.LYING_EVENTS, 0.02) else 0
        return message.message_id, message.event_us + moved_us

    def _note(self, message: Message, observation: Observation, node: str, when_us: tuple[int, int | None]) -> None:
        """Note a visit, when the message came, and when the node was done with it, if it ever was."""
        self.truth.visits[message.window_us].append((node, observation))
        key = message.window_us, node, message.message_id
        for known_us, moment_us in zip((self.truth.came_us, self.truth.done_us), when_us, strict=True):
            if moment_us is not None:
                known_us[key] = min(moment_us, known_us.get(key, moment_us))

    def _lose(self, message: Message, node: str) -> None:
        self.truth.lost_at[message.window_us, node].add(message.message_id)

    def _leave(self, message: Message, node: str, left_us: int) -> None:
        """Send what left a node on: to every node it must go to, and to one of each group."""
        for to in sorted(self.pathway.must[node]):
            self._handle(message, to, left_us + self._delay_us(), to)
        for group in self.pathway.one_of[node]:
            if self.dice.hit(Fault.LOST, 0.05):
                self._lose(message, node)
                continue
            for to in self.dice.rng.sample(sorted(group), 2 if self.dice.hit(Fault.TWO_WAYS, 0.1) else 1):
                self._handle(message, to, left_us + self._delay_us(), node)
