"""Tests of the monitor's own pulse, up to where it beats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hopwatch.monitor import pulse
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.sinks.kafka import KafkaSink
from hopwatch.probes.sinks.spool import SpoolSink

ACCESS = KafkaAccess("SASL_SSL", "PLAIN", "hopwatch", "secret")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the pulse asks of its probe, which is not started."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(pulse, "Probe", lambda _stream, _node, sink, **arguments: asked.update(arguments, sink=sink))
    return asked


def test_a_pulse_is_let_in_as_the_monitor_is(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pulse uses the Kafka access of the settings, and not that of the environment."""
    monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SECURITY_PROTOCOL", "SSL")
    pulse.start_pulse("kafka://127.0.0.1:1/t", ACCESS, 3.0)
    sink = asked["sink"].open("an-instance")
    assert isinstance(sink, KafkaSink)
    assert (sink.place, sink.access) == (KafkaPlace("127.0.0.1:1", "t"), ACCESS)


def test_a_pulse_through_a_spool_has_a_folder_of_its_own(asked: dict[str, Any]) -> None:
    """Its probe opens the spool, and names the folder as every probe does."""
    pulse.start_pulse("spool:/s", KafkaAccess(), 3.0)
    sink = asked["sink"].open("an-instance")
    assert isinstance(sink, SpoolSink)
    assert (sink.folder, asked["heartbeat_every_s"], asked["flush_every_s"]) == (Path("/s/an-instance"), 3.0, 3.0)
