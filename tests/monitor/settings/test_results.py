"""Tests of the table of results: where they go, and what is told of a place that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.monitor import settings
from hopwatch.monitor.errors import SettingsError

STREAM = '[streams.orders]\npath = "a -> b"\n'


def load(folder: Path, text: str) -> settings.Settings:
    """Load a configuration."""
    (folder / "hopwatch.toml").write_text(STREAM + text)
    return settings.load(folder / "hopwatch.toml", flags={}, environ={})


def test_without_the_table_nothing_is_published(tmp_path: Path) -> None:
    """With it, the topic is one of the named brokers."""
    assert load(tmp_path, "").results is None
    found = load(tmp_path, '[results]\ntopic = "kafka://a:9092,b:9092/results"').results
    assert found is not None
    assert (found.place.brokers, found.place.topic) == ("a:9092,b:9092", "results")


WRONG = {
    "no topic": ("[results]", "results.topic: this is required"),
    "a spool": ('[results]\ntopic = "spool:x"', "results go to a topic, \"kafka://HOST:PORT/TOPIC\"; got 'spool:x'"),
    "a number": ("[results]\ntopic = 1", 'results go to a topic, "kafka://HOST:PORT/TOPIC"; got 1'),
    "no name": (
        '[results]\ntopic = "kafka://a:9092"',
        "results go to a topic of their own, \"kafka://HOST:PORT/TOPIC\"; 'kafka://a:9092' names none",
    ),
    "no port": ('[results]\ntopic = "kafka://a/results"', "got 'a' for a broker"),
    "no such key": (
        '[results]\ntopik = "kafka://a:9092/results"',
        "results.topik: there is no such key; did you mean 'topic'? Known here: topic",
    ),
    "the topic of the probes": (
        '[transport]\nurl = "kafka://a:9092/x"\n[results]\ntopic = "kafka://a:9092/x"',
        "results are in a topic of their own, got that of the probes' records, [transport] url",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(text: str, words: str, tmp_path: Path) -> None:
    """With what was got, and what to do."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)
