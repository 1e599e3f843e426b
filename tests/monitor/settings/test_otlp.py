"""Tests of the table of the receiver of metrics."""

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


def test_metrics_go_to_the_path_of_the_protocol(tmp_path: Path) -> None:
    """Below the address of a receiver, with a slash at its end or without; nowhere without the table."""
    assert load(tmp_path, "").otlp is None
    for url in ("http://collector:4318", "http://collector:4318/"):
        found = load(tmp_path, f'[otlp]\nurl = "{url}"').otlp
        assert found is not None
        assert found.metrics_url == "http://collector:4318/v1/metrics"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[otlp]", "otlp.url: this is required"),
        ('[otlp]\nurl = "collector:4318"', 'otlp.url: this is a URL such as "https://host.example/path"'),
        (
            '[otlp]\nurl = "https://a"\nca_file = "/none"',
            "otlp.ca_file: the file /none cannot be read: No such file or directory",
        ),
        ('[otlp]\nurl = "http://a"\nurll = ""', "otlp.urll: there is no such key; did you mean 'url'?"),
    ],
)
def test_what_is_wrong_is_told(text: str, words: str, tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)
