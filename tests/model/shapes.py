"""Streams: pathways of every form, their settings, and the ids of their messages."""

import hashlib
import json
from typing import Any

from tests.model.message_names import Given, as_text
from tests.model.pathway import parse
from tests.model.random_choices import Dice, Fault

_NAMES = ("ingest", "router", "norm", "eu", "us", "connector", "sink", "A.b-c_1", "0", "archive", "n" * 128)
_SHAPES: tuple[tuple[str, ...], ...] = (
    ("a",),
    ("a -> b",),
    ("a -> b -> c -> d",),
    ("a -> b -> c -> d -> e -> f",),
    ("a -> b | c",),
    ("a -> b | c -> d",),
    ("a -> b", "b -> c | d", "c -> e", "d -> e"),
    ("a -> b | c | d", "b -> e", "c -> e"),
    ("a -> b & c",),
    ("a -> b & c -> d",),
    ("a -> b & c", "b -> d", "c -> e -> d"),
    ("a -> c", "b -> c -> d"),
    ("a -> d", "b -> d", "c -> e", "d -> e"),
    ("a -> b | c", "a -> d | e"),
    ("a -> b | c -> f", "a -> d | e -> f"),
    ("a -> b", "a -> c | d", "b -> e", "c -> e"),
    ("a -> b -> c", "a -> c"),
    ("a -> b | c", "c -> b -> d"),
    ("a -> b | c", "d -> c -> e"),
    ("a -> b | c -> d | e -> f",),
    ("a & b -> c",),
    ("b -> c", "d -> c", "a -> b", "a -> d", "e -> d"),
    ("a -> b", "c -> d"),
)


def config(dice: Dice) -> dict[str, Any]:
    """Give one `[streams.X]` table; what equals the default is left out now and then."""
    lines = list(dice.one(_SHAPES)) if dice.rng.random() < 0.7 else _random_lines(dice)
    letters = sorted({letter for line in lines for letter in line if letter.isalpha()})
    names = dict(zip(letters, dice.rng.sample(_NAMES, len(letters)), strict=True))
    path = ["".join(names.get(letter, letter) for letter in line) for line in lines]
    sides = {names[letter]: dice.one(("in", "out")) for letter in letters if dice.rng.random() < 0.2}
    table: dict[str, Any] = {"path": path[0] if len(path) == 1 and dice.rng.random() < 0.5 else path}
    sides |= dict.fromkeys(_counting(dice, path), "count")
    if sides or dice.rng.random() < 0.3:
        table["stamps"] = sides
    for key, choices in (
        ("transit", ("20s", "60s", "150s", "150s")),
        ("settle", ("15s", "30s")),
        ("amend_for", ("120s", "1h", "1h")),
        ("max_age", ("24h", "24h", "2h")),
    ):
        if dice.rng.random() < 0.7:
            table[key] = dice.one(choices)
    return table


def _counting(dice: Dice, path: list[str]) -> list[str]:
    """Give some nodes that may only count: one arrow to each and one from it at most, and ids somewhere."""
    drawn = parse(path, {})
    may = [
        node
        for node in drawn.nodes
        if len(drawn.must_come_from(node)) <= 1 >= len(drawn.must[node])
        and not drawn.one_of[node]
        and not any(node in group for groups in drawn.one_of.values() for group in groups)
    ]
    chosen = [node for node in may if dice.rng.random() < 0.3]
    if len(chosen) == len(drawn.nodes):
        chosen.pop()
    past = parse(path, dict.fromkeys(chosen, "count"))
    is_of_two_kinds = any(past.must[node] & frozenset().union(*past.one_of[node]) for node in past.nodes)
    return [] if is_of_two_kinds else chosen


def _random_lines(dice: Dice) -> list[str]:
    """Give the edges of a random graph: from each node to later ones, some to all of, some to one of each group."""
    letters = "abcdefgh"[: dice.rng.randint(2, 7)]
    lines, led_to = [], set()
    for at, letter in enumerate(letters[:-1]):
        later = dice.rng.sample(
            letters[at + 1 :], dice.rng.randint(0 if letter in led_to else 1, len(letters) - at - 1)
        )
        led_to.update(later)
        while later:
            size = dice.rng.randint(1, min(3, len(later)))
            hop, later = later[:size], later[size:]
            lines.append(f"{letter} -> {dice.one((' | ', ' & ')).join(sorted(hop))}")
    if letters[-1] not in led_to:
        lines.append(f"{letters[-2]} -> {letters[-1]}")
    dice.rng.shuffle(lines)
    return lines


class Ids:
    """Message ids of one style a stream, no two alike."""

    def __init__(self, dice: Dice) -> None:
        """Choose the style."""
        self._dice = dice
        self._style = dice.one((self._uuid7, self._small, self._hashed, self._same_halves, self._text, self._text))
        self._given: set[bytes] = set()

    def new(self, moment_us: int) -> bytes:
        """Give an id made at that moment."""
        message_id = self._style(moment_us)
        while message_id in self._given:
            message_id = self._hashed(moment_us)
        self._given.add(message_id)
        return message_id

    def _uuid7(self, moment_us: int) -> bytes:
        rest = self._dice.rng.getrandbits(74)
        number = moment_us // 1000 << 80 | 7 << 76 | rest >> 62 << 64 | 0b10 << 62 | rest % 2**62
        return Given.of((number % 2**128).to_bytes(16, "big"), "UUID")

    def _small(self, _moment_us: int) -> bytes:
        return Given.of(len(self._given).to_bytes(16, "big"), "INT")

    def _text(self, _moment_us: int) -> bytes:
        return as_text(self._dice, len(self._given))

    def _hashed(self, moment_us: int) -> bytes:
        text = json.dumps([self._dice.dials.seed, moment_us, len(self._given), self._dice.rng.random()])
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def _same_halves(self, _moment_us: int) -> bytes:
        """Halves from a handful, so that any fold to 64 bits meets equals."""
        return b"".join(self._dice.rng.randint(0, 5).to_bytes(8, self._dice.one(("big", "little"))) for _ in range(2))


def reason(dice: Dice) -> str:
    """Give a reason for filtering or rejecting."""
    if Fault.AWKWARD in dice.dials.faults:
        return dice.one(
            ("", "[red]no price[/]", "'; DROP TABLE windows; --", "\u05de\u05d7\u05d9\u05e8 e\u0301\x00", "r" * 64)
        )
    return dice.one(("test traffic", "no price", "too old"))
