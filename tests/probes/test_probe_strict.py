"""Tests of what a probe refuses, loudly with ``strict`` and quietly without; and of the twin that has no sink."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopwatch import Probe
from hopwatch.probes.environment import SINK_VARIABLE
from hopwatch.probes.errors import ProbeError
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations

BAD_ARGUMENTS = [
    ({"stream": "a b"}, "a stream is 1 to 128 of the characters A-Za-z0-9._-, got 'a b'"),
    ({"stream": ""}, "a stream is 1 to 128 of the characters A-Za-z0-9._-, got ''"),
    ({"node": None}, "a node is 1 to 128 of the characters A-Za-z0-9._-, got None"),
    ({"probe": ""}, "a probe's name is a text of 1 to 128 characters, got ''"),
    ({"probe": 7}, "a probe's name is a text of 1 to 128 characters, got 7"),
    ({"probe": "\ud800"}, "a probe's name is a text of 1 to 128 characters, got '\\ud800'"),
    ({"labels": {str(n): "" for n in range(9)}}, "labels are a dict of at most 8, got 9"),
    ({"labels": ["host"]}, "labels are a dict of at most 8, got list"),
    ({"labels": {"partition": 3}}, "a label is a text of at most 64 characters, got 3"),
    ({"labels": {"x" * 65: ""}}, f"a label is a text of at most 64 characters, got {'x' * 65!r}"),
    ({"sink": "kafka:"}, "a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got 'kafka:'"),
    ({"sink": Path("var")}, "a sink is a URL or an object with send, failed, tick, settle, close, got PosixPath"),
    ({"flush_every_s": 0}, "flush_every_s is a number over 0, got 0"),
    ({"heartbeat_every_s": float("nan")}, "heartbeat_every_s is a number over 0, got nan"),
    ({"most_stamps": None}, "most_stamps is a number over 0, got None"),
    ({"max_age_s": 0}, "max_age_s is a number over 0, got 0"),
    ({"max_age_s": "1d"}, "max_age_s is a number over 0, got '1d'"),
    ({"announce_within_s": -1}, "announce_within_s is a number over 0, got -1"),
]


@pytest.fixture
def strict() -> Iterator[Probe]:
    """Yield a probe for development."""
    with Probe("orders", "router", MemorySink(), strict=True, clock=ManualClock()) as probe:
        yield probe


def arguments(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - a host may pass anything
    """Return the arguments of a probe, some of them changed."""
    return {"stream": "orders", "node": "router", "sink": MemorySink()} | changed


@pytest.mark.parametrize(("changed", "message"), BAD_ARGUMENTS)
def test_a_strict_probe_says_which_argument_cannot_be(changed: dict[str, Any], message: str) -> None:
    """The sentence says what is allowed and what was got."""
    with pytest.raises(ProbeError) as caught:
        Probe(**arguments(**changed), strict=True)
    assert str(caught.value) == message


@pytest.mark.parametrize(("changed", "message"), BAD_ARGUMENTS)
def test_in_production_such_a_probe_does_nothing(
    changed: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The host starts, reads why in its log, and may call what it likes."""
    threads = threading.active_count()
    probe = Probe(**arguments(**changed))
    call_all(probe)
    assert f"a probe does nothing: {message}" in caplog.text
    assert (probe.dropped, threading.active_count()) == (0, threads)


def call_all(probe: Probe) -> None:
    """Call all that a host may."""
    probe.arrived(1, EPOCH_US)
    probe.departed(1, EPOCH_US)
    probe.filtered(2, EPOCH_US, reason="test traffic")
    probe.rejected(3, EPOCH_US, reason="no price")
    with probe.passing(4, EPOCH_US):
        probe.arrived_many([5, 6], [EPOCH_US, EPOCH_US])
    probe.departed_many([5], [EPOCH_US, EPOCH_US])
    probe.flush()
    probe.close()


def test_a_strict_probe_raises_where_its_spool_cannot_be_made(tmp_path: Path) -> None:
    """In development the wrong folder is an error at once, not a count of drops later."""
    (tmp_path / "file").touch()
    with pytest.raises(ProbeError, match=r"Not a directory: '.*file"):
        Probe("orders", "router", f"spool:{tmp_path}/file", strict=True)


@pytest.mark.parametrize("variable", [None, ""])
def test_without_a_sink_a_probe_is_a_twin_that_does_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str | None
) -> None:
    """A probe without a sink keeps nothing, starts nothing, and logs so once."""
    monkeypatch.delenv(SINK_VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(SINK_VARIABLE, variable)
    threads = threading.active_count()
    with caplog.at_level(logging.WARNING), Probe("orders", "router") as probe:
        call_all(probe)
    told = "a probe of orders at router has no sink, neither given nor in HOPWATCH_SINK: it does nothing"
    assert caplog.messages == [told]
    assert (len(probe._queue), probe.dropped, threading.active_count()) == (0, 0, threads)


class ClosedSink(MemorySink):
    """A sink of a team, which can tell that it takes nothing."""

    def check(self) -> None:
        """Say so."""
        raise OSError("the cupboard is locked")


def test_a_sink_that_can_tell_is_asked_by_a_strict_probe_alone() -> None:
    """One without ``check`` counts as fine."""
    with pytest.raises(ProbeError, match=r"^the cupboard is locked$"):
        Probe(**arguments(sink=ClosedSink()), strict=True)
    for sink, strict in ((ClosedSink(), False), (MemorySink(), True)):
        with Probe(**arguments(sink=sink), strict=strict, clock=ManualClock()) as probe:
            probe.arrived(1, EPOCH_US)
        assert len(observations(sink)) == 1


def test_the_environment_may_name_the_sink(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A service is embedded once and told where to send when it is deployed; a sink that is given goes first."""
    monkeypatch.setenv(SINK_VARIABLE, f"spool:{tmp_path}")
    Probe("orders", "router", probe="host-1", clock=ManualClock()).close()
    Probe("orders", "router", MemorySink()).close()
    assert [path.parts[-2:] for path in sorted(tmp_path.rglob("*.seg"))] == [
        (f"orders.router.host-1.{EPOCH_US}", name) for name in ("0000000000.seg", "0000000001.seg")
    ]


MICROSECONDS = "an event time as an int is µs since 1970, got"
FORMS = "event times in arrays are integers in µs since 1970, datetime64 in UTC or datetimes with a zone"
BOUNDS = "an event time is at most 24 h old and 5 min ahead, got"
NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001 - naive, hence bad
ZONE = "an event time has a zone, got the naive 2024-01-01T00:00:00: use datetime.now(timezone.utc)"


def in_a_block(probe: Probe, message_id: Any, event_time: Any) -> None:  # noqa: ANN401 - a host may pass anything
    """Stamp a message on its way through."""
    with probe.passing(message_id, event_time):
        pass


@pytest.mark.parametrize(
    ("message_id", "event_time", "message"),
    [
        (1, NAIVE, ZONE),
        (1, None, "an event time is an aware datetime or whole µs since 1970, got NoneType"),
        (1, -1, "an event time lies between 1970 and 2255, got -1 µs since 1970"),
        (b"short", EPOCH_US, "a message id in bytes has 16 of them, got 5: pass a str to have it hashed"),
        (None, EPOCH_US, "a message id is a UUID, 16 bytes, an int or a str, got NoneType"),
        (1, 1_795_270_326, f"{MICROSECONDS} 1795270326, which looks like seconds: multiply it by 1,000,000"),
        (1, 1_795_270_326_000, f"{MICROSECONDS} 1795270326000, which looks like milliseconds: multiply it by 1,000"),
        (
            1,
            1_795_270_326_000_000_000,
            (
                "an event time lies between 1970 and 2255, got 1795270326000000000 µs since 1970, "
                "which looks like nanoseconds: divide it by 1,000"
            ),
        ),
        (1, EPOCH_US - 90_000_000_000, f"{BOUNDS} {EPOCH_US - 90_000_000_000}, 25.0 h before now: see max_age_s"),
        (1, EPOCH_US + 600_000_000, f"{BOUNDS} {EPOCH_US + 600_000_000}, 10.0 min ahead of this clock: see max_age_s"),
    ],
)
@pytest.mark.parametrize("call", [Probe.arrived, Probe.departed, Probe.filtered, Probe.rejected, in_a_block])
def test_a_strict_probe_raises_where_production_counts(
    strict: Probe, call: Callable[..., None], message_id: object, event_time: object, message: str
) -> None:
    """At the call itself, so that the line that is wrong stands in the trace."""
    with pytest.raises(ProbeError) as caught:
        call(strict, message_id, event_time)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("ids", "events", "message"),
    [
        ([1, 2], [EPOCH_US], "there is one event time an id, got 2 ids and 1 event times"),
        ([1, -2], [EPOCH_US] * 2, "an integer message id lies in 0 … 2^128 - 1, got -2"),
        (b"short", [EPOCH_US], "ids in bytes have 16 each, got 5 bytes in all"),
        (
            [1.5],
            [EPOCH_US],
            "a message id is a UUID, 16 bytes, an int or a str, got float",
        ),
        (
            np.array([1.5]),
            [EPOCH_US],
            "ids in arrays are texts, UUIDs, integers, (n, 16) uint8 or items of 16 bytes, got float64 of shape (1,)",
        ),
        (
            np.zeros((2, 8), np.uint8),
            [EPOCH_US] * 2,
            "ids in arrays are texts, UUIDs, integers, (n, 16) uint8 or items of 16 bytes, got uint8 of shape (2, 8)",
        ),
        (
            [1],
            [EPOCH_US // 1_000],
            f"{MICROSECONDS} {EPOCH_US // 1_000}, which looks like milliseconds: multiply it by 1,000",
        ),
        (
            [1],
            ["now"],
            f"{FORMS}, got <U3 of shape (1,)",
        ),
        (
            [1],
            [datetime(2026, 1, 1)],  # noqa: DTZ001 - that is what is refused
            "an event time has a zone, got the naive 2026-01-01T00:00:00: use datetime.now(timezone.utc)",
        ),
        (
            [1],
            pd.Series([datetime(2026, 1, 1)]),  # noqa: DTZ001 - that is what is refused
            "an event time has a zone, got a Series of datetime64[ns]: use tz_localize",
        ),
        (
            ["a", None],
            [EPOCH_US] * 2,
            "a message id is a UUID, 16 bytes, an int or a str, got NoneType",
        ),
    ],
)
@pytest.mark.parametrize("call", [Probe.arrived_many, Probe.departed_many])
def test_a_strict_probe_raises_for_bad_arrays(
    strict: Probe, call: Callable[..., None], ids: object, events: object, message: str
) -> None:
    """The sentence says what arrays may be and what was got."""
    with pytest.raises(ProbeError) as caught:
        call(strict, ids, events)
    assert str(caught.value) == message


def test_a_strict_probe_stamps_what_is_right() -> None:
    """Good input goes the same way as in production."""
    sink = MemorySink()
    with Probe("orders", "router", sink, strict=True, clock=ManualClock()) as probe:
        probe.arrived(1, EPOCH_US)
        in_a_block(probe, 2, EPOCH_US)
        probe.filtered(3, EPOCH_US, reason="test traffic")
        probe.arrived_many([4], [EPOCH_US])
    assert len(observations(sink)) == 4
