"""Tests of the Kafka sink without its client; real brokers are in tests/real."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hopwatch import Probe
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.sinks.kafka import KafkaSink


def test_a_client_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log of a service, which goes on; raised where a probe is strict."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    told = "confluent-kafka is not installed: pip install 'hopwatch[kafka]'"
    sink = KafkaSink(KafkaPlace.parse("kafka://127.0.0.1:1/obs"), "orders.a.x")
    assert not sink.send(b"record")
    assert [record.getMessage() for record in caplog.records] == [
        f"the topic kafka://127.0.0.1:1/obs cannot be reached: {told}"
    ]
    with pytest.raises(OSError, match=re.escape(told)):
        sink.check()
    with pytest.raises(ProbeError, match=re.escape(told)):
        Probe(stream="orders", node="a", sink="kafka://127.0.0.1:1/obs", strict=True)


def test_a_client_that_cannot_be_made_fails_the_check_as_brokers_that_are_away_do(tmp_path: Path) -> None:
    """A tap and a strict probe show one line for a file of certificates that is missing, and no traceback."""
    access = KafkaAccess(security_protocol="SSL", ssl_ca_file=str(tmp_path / "ca.pem"))
    sink = KafkaSink(KafkaPlace.parse("kafka://127.0.0.1:1/obs"), "orders.a.x", access=access)
    with pytest.raises(OSError, match=r"^the brokers 127\.0\.0\.1:1 cannot be reached: .*ssl\.ca\.location"):
        sink.check()
