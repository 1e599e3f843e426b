"""Tests of ``[metrics]``: what is right, and what is said of what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load


def settings(tmp_path: Path, text: str, **environ: str) -> Any:  # noqa: ANN401 - the settings of one table
    """Return what a file and variables make of the table."""
    path = tmp_path / "hopwatch.toml"
    path.write_text(text)
    return load(path, flags={}, environ=environ).metrics


def test_without_a_word_nothing_is_served(tmp_path: Path) -> None:
    """And were it, there would be at most 10,000 series."""
    found = settings(tmp_path, "")
    assert (found.listen, found.most_series) == (None, 16_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("monitor.example:80", ("monitor.example", 80)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: tuple[str, int], tmp_path: Path) -> None:
    """In the file, or in a variable."""
    assert settings(tmp_path, f'[metrics]\nlisten = "{text}"\n').listen == expected
    assert settings(tmp_path, "", HOPWATCH_METRICS__LISTEN=text).listen == expected


WRONG = {
    "no port": (
        'listen = "127.0.0.1"',
        'listen: an address is HOST:PORT, such as "127.0.0.1:9464", "0.0.0.0:9464" or "[::1]:9464"; got \'127.0.0.1\'',
    ),
    "number": ("listen = 9464", "listen: an address is HOST:PORT, "),
    "port 0": ('listen = "h:0"', "listen: an address is HOST:PORT, "),
    "large port": ('listen = "h:65536"', "listen: an address is HOST:PORT, "),
    "URL": ('listen = "http://h:80"', "listen: an address is HOST:PORT, "),
    "few": ("most_series = 999", "most_series: most_series is a whole number from 1,000 to 100,000, got 999"),
    "many": ("most_series = 100001", "most_series: most_series is a whole number from 1,000 to 100,000, got 100001"),
    "truth": ("most_series = true", "most_series: most_series is a whole number from 1,000 to 100,000, got True"),
    "unknown": ('listens = "h:1"', "listens: there is no such key; did you mean 'listen'?"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    """With what was got and what may stand there."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, f"[metrics]\n{text}\n")
    assert str(caught.value).startswith(f"{tmp_path}/hopwatch.toml:2: metrics.{words}")


def test_the_name_of_what_is_folded_is_reserved(tmp_path: Path) -> None:
    """A stream of that name could not be told from the others."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, '[streams.__other__]\npath = "a -> b"\n')
    assert "the stream name '__other__' is reserved for streams that metrics do not show one by one" in str(
        caught.value
    )
