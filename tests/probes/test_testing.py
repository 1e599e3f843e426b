"""Tests of what the package offers to tests of services."""

from __future__ import annotations

import re

import pytest

from hopwatch import integrations, testing
from hopwatch.integrations import confluent_kafka
from hopwatch.probes.contract.body import RecordError
from hopwatch.probes.integrations import confluent_kafka as integration
from hopwatch.testing import MemorySink, observations
from tests.repository import ROOT


def test_the_documented_example_holds() -> None:
    """The example in INSTRUMENT runs as it stands there."""
    text = (ROOT / "docs" / "INSTRUMENT.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(from hopwatch import Probe\nfrom hopwatch\.testing .*?)```", text, re.DOTALL)
    exec(example, {})  # noqa: S102 - it is our own page


def test_what_is_no_record_of_a_probe_is_refused() -> None:
    """A test that hands something else to the sink is told so."""
    sink = MemorySink()
    sink.send(b"no record")
    with pytest.raises(RecordError, match="got"):
        observations(sink)


def test_public_names_lead_to_one_thing_each() -> None:
    """Under its short name a function is the same, and there is a sentence on each module."""
    assert confluent_kafka.instrument is integration.instrument
    assert all(module.__doc__ for module in (testing, integrations, confluent_kafka))
