"""Golden sessions of a probe: what a service calls, and each record that its probe sends, byte for byte.

``python -m tests.probes.contract.sessions`` writes them to ``sessions.jsonl`` beside it; INTERFACE.md says what is in
it.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from hopwatch.probes import Probe, lifecycle
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink

PATH: Final = Path(__file__).with_name("sessions.jsonl")
RANDOM_SESSIONS: Final = 120
FIRST_MINUTE: Final = 10_000
MAX_SHOWN_BYTES: Final = 400

Step = list[Any]
Session = dict[str, Any]


class FaultySink(MemorySink):
    """Sink in memory that may raise instead of refusing."""

    raises = False

    def send(self, record: bytes) -> bool:
        """Keep a record, refuse it, or raise."""
        if self.raises:
            raise OSError("out of order")
        return super().send(record)


def build_sessions() -> list[Session]:
    """Return all sessions, each with a name of its own."""
    named = [*_named(), *((f"random {seed}", _random_steps(random.Random(seed))) for seed in range(RANDOM_SESSIONS))]
    return [
        {"name": name, "labels": labels, "epoch_us": EPOCH_US, "steps": steps, "records": play(steps, labels)}
        for name, steps in named
        for labels in [{"host": "käfer", "version": "2"} if len(name) % 2 else {}]
    ]


def play(steps: list[Step], labels: dict[str, str]) -> list[str]:
    """Return the records that a probe sends when a service calls it so."""
    clock, sink = ManualClock(), FaultySink()
    # Without a thread it sends only where it is asked to.
    with patch.object(lifecycle, "check_interpreter", side_effect=RuntimeError("none is wanted")):
        probe = Probe("orders", "router", sink, probe="host-1", labels=labels, clock=clock)
    for name, *arguments in steps:
        _ACTS[name](probe, sink, clock, *arguments)
    probe.close(bye=False)
    return [describe(record) for record in sink.records]


def describe(record: bytes) -> str:
    """Return a record in hexadecimal, and a large one as the SHA-256 of its bytes."""
    if len(record) <= MAX_SHOWN_BYTES:
        return record.hex()
    return f"sha256:{sha256(record).hexdigest()}"


def _read_id(said: dict[str, str]) -> Any:  # noqa: ANN401 - as a service passes it
    kind, value = next(iter(said.items()))
    return _IDS[kind](value)


_IDS: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "long_text": lambda value: value + "z" * 1_000,
    "uuid": uuid.UUID,
    "int": int,
    "bytes": bytes.fromhex,
    "flag": bool,
}
"""What an id is read by; a flag is none."""


def _refuse(_probe: Probe, sink: FaultySink, _clock: ManualClock, how: str) -> None:
    sink.is_full, sink.raises = how == "refuses", how == "raises"


def _fail(_probe: Probe, sink: FaultySink, _clock: ManualClock, count: int) -> None:
    """Let the last records fail that were accepted."""
    sink.failing += sink.records[len(sink.records) - count :]


def _miss_many(probe: Probe, _sink: FaultySink, _clock: ManualClock, count: int) -> None:
    """Miss so many messages of long ago, whose event times, in milliseconds, would mean a window each."""
    for number in range(count):
        probe.missed("broken", (FIRST_MINUTE + number) * WINDOW_US)


_ACTS: Final[dict[str, Callable[..., None]]] = {
    "advance": lambda _probe, _sink, clock, us: clock.advance(us / 1e6),
    "arrived": lambda probe, _sink, _clock, said, event_us: probe.arrived(_read_id(said), event_us),
    "departed": lambda probe, _sink, _clock, said, event_us: probe.departed(_read_id(said), event_us),
    "filtered": lambda probe, _sink, _clock, said, event_us, why: probe.filtered(_read_id(said), event_us, why),
    "rejected": lambda probe, _sink, _clock, said, event_us, why: probe.rejected(_read_id(said), event_us, why),
    "missed": lambda probe, _sink, _clock, cause, event_us: probe.missed(cause, event_us),
    "miss_many": _miss_many,
    "sink": _refuse,
    "fail": _fail,
    "flush": lambda probe, _sink, _clock: probe.flush(),
    "close": lambda probe, _sink, _clock: probe.close(),
}


def _named() -> Iterator[tuple[str, list[Step]]]:
    """Yield sessions for each thing that may go wrong."""
    at, flush, close = EPOCH_US, ["flush"], ["close"]
    one: Step = ["arrived", {"text": "a-1"}, at]
    yield "no messages", [close]
    yield "one message", [one, close]
    yield "flushed without messages", [flush, ["advance", 5_000_000], flush, close]
    yield "stamped at the moment that is completed", [["advance", 1_000_000], flush, one, flush, close]
    ids = [{"text": "größe \U0001f40e"}, {"uuid": str(uuid.UUID(int=7))}, {"int": "0"}, {"int": str(2**128 - 1)}]
    ids += [{"text": ""}, {"bytes": "00" * 15 + "ff"}, {"flag": "x"}, {"int": "-1"}, {"int": str(2**128)}]
    ids += [{"bytes": "00" * 15}, {"text": "x" * 1_024}, {"text": "y" * 1_025}, {"text": "é" * 600}]
    yield "ids of all kinds", [*(["arrived", one_id, at] for one_id in ids), close]
    yield "what is no id", [["arrived", {"flag": "x"}, at], ["departed", {"int": "-1"}, at], close]
    many = [["departed", {"long_text": f"{number:04d}"}, at + number] for number in range(700)]
    yield "texts beyond half a megabyte", [*many, close]
    times = [-1, 0, 1_700_000_000, at // 1_000, at * 1_000, at + 300_000_000, at + 300_000_001, 2**53, 2**62]
    times += [at - 86_400_000_000, at - 86_400_000_001]
    yield "event times of all kinds", [*(["arrived", {"int": str(n)}, us] for n, us in enumerate(times)), close]
    reasons = [["filtered", {"int": str(n)}, at, f"reason {n % 40}"] for n in range(80)]
    yield "more reasons than a batch has", [*reasons, ["rejected", {"int": "99"}, at, None], close]
    yield "a reason and none", [["rejected", {"int": "1"}, at, "bad"], ["filtered", {"int": "2"}, at, ""], one, close]
    yield "a sink that is full", [one, ["sink", "refuses"], flush, one, ["sink", "accepts"], flush, close]
    yield "a sink that is full from now on", [one, flush, ["sink", "refuses"], one, close]
    yield "a sink that raises", [one, flush, ["sink", "raises"], one, flush, ["sink", "accepts"], one, flush, close]
    yield "records that fail later", [one, flush, one, flush, ["fail", 2], flush, ["advance", 1_000], flush, close]
    yield "a hello that fails later", [["fail", 1], flush, one, close]
    yield "drops whose report fails", [["missed", "broken", at], one, flush, ["fail", 1], flush, close]
    missed = [["missed", "a cause that is far too long for the wire, as it has 64 characters at most", at]]
    yield "messages that were missed", [*missed, ["missed", "broken", at + WINDOW_US], ["missed", "broken", 5], close]
    later: Step = ["advance", 1_000_000]
    yield "as many drops as a record has", [["miss_many", 1_023], one, later, flush, close]
    yield "one drop more than a record has", [["miss_many", 1_024], one, later, flush, close]
    yield "many drops and no message", [["miss_many", 3_000], later, flush, later, one, close]
    yield "as many drops as are counted", [["miss_many", 9_999], later, flush, later, one, close]
    hole = [["miss_many", 10_000], one, later, flush, ["advance", 200_000_000], one, flush, ["advance", 200_000_000]]
    yield "more drops than are counted", [*hole, one, flush, later, one, close]
    yield "closed within a hole", [["miss_many", 10_000], one, later, flush, later, one, close]
    again = [["advance", 130_000_000], one, flush, ["miss_many", 10_001], flush, ["advance", 310_000_000], flush]
    yield "a hole behind a hole", [*again, *again, one, close]
    yield "closed twice", [one, close, one, close]


def _random_steps(chance: random.Random) -> list[Step]:
    """Return a session by chance; a message is stamped on one side alone, as joined stamps are one observation."""
    steps: list[Step] = []
    now_us = EPOCH_US
    for _ in range(chance.randint(1, 60)):
        name = chance.choices(
            ("stamp", "advance", "flush", "missed", "sink", "fail"), (60, 15, 10, 4, 6, 1 + 4 * bool(steps))
        )[0]
        if name == "stamp":
            steps.append(_random_stamp(chance, now_us))
        elif name == "advance":
            moved_us = chance.choice((1, 999_999, 5_000_000, 60_000_000, 400_000_000))
            now_us += moved_us
            steps.append(["advance", moved_us])
        elif name == "missed":
            steps.append(["missed", chance.choice(("broken", "unmarked")), now_us - chance.randint(0, 200_000_000)])
        elif name == "sink":
            steps.append(["sink", chance.choice(("accepts", "accepts", "refuses", "raises"))])
        elif name == "fail":
            steps += [["sink", "accepts"], ["flush"], ["fail", 1]]
        else:
            steps.append(["flush"])
    return [*steps, ["sink", "accepts"], ["flush"], ["close"]]


def _random_stamp(chance: random.Random, now_us: int) -> Step:
    number = chance.randint(0, 40)
    forms = ({"text": f"order-{number}"}, {"int": str(number)}, {"uuid": str(uuid.UUID(int=number << 64))})
    event_us = now_us + chance.choice((0, -1, -59_999_999, -60_000_000, -3_600_000_000, 1_000, -90_000_000_000))
    kind = chance.choice(("side", "side", "side", "filtered", "rejected"))
    if kind == "side":
        return ["arrived" if number % 2 else "departed", forms[number % 3], event_us]
    return [kind, {"int": str(1_000 + number)}, event_us, chance.choice((None, "test order", "broken", "late"))]


def write_sessions() -> str:
    """Return the text of the file."""
    return "".join(json.dumps(session, ensure_ascii=True) + "\n" for session in build_sessions())


if __name__ == "__main__":
    PATH.write_text(write_sessions(), "ascii")
