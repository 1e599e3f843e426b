"""Tests of what the environment says of access to Kafka."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hopwatch import Probe
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.sinks.kafka import KafkaSink, read_access

PREFIX = "HOPWATCH_TRANSPORT__KAFKA__"
USER = {
    f"{PREFIX}SECURITY_PROTOCOL": "SASL_SSL",
    f"{PREFIX}SASL_MECHANISM": "PLAIN",
    f"{PREFIX}SASL_USERNAME": "me",
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file with a secret."""
    file = tmp_path / "secret"
    file.write_text("from-file\r\n")
    return file


def test_without_a_word_nothing_is_needed() -> None:
    """Without credentials the client connects in plain text."""
    assert read_access({"HOPWATCH_SINK": "kafka://h:1"}) == KafkaAccess()


@pytest.mark.parametrize("said", [{}, {"SASL_PASSWORD": ""}])
def test_a_secret_may_stand_in_a_file(said: dict[str, str], secret: Path) -> None:
    """Its line end is not part of it; a variable that is empty says nothing."""
    variables = {"SASL_PASSWORD_FILE": str(secret), **said}
    access = read_access(USER | {PREFIX + name: value for name, value in variables.items()})
    assert access == KafkaAccess("SASL_SSL", "PLAIN", "me", "from-file")


@pytest.mark.parametrize("name", ["sasl_password", "ssl_key_password"])
def test_a_secret_that_is_said_twice_is_refused(name: str, secret: Path) -> None:
    """Nobody has to guess which one is taken, and neither is shown."""
    said = {PREFIX + name.upper(): "from-variable", f"{PREFIX}{name.upper()}_FILE": str(secret)}
    with pytest.raises(ValueError, match="keep one") as caught:
        read_access(USER | said)
    assert str(caught.value) == f"{name} and {name}_file both say the secret: keep one of them"


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
