"""Moments that people and programs write, ISO 8601, parsed to µs since 1970."""

from __future__ import annotations

from datetime import UTC, datetime

from hopwatch.monitor.errors import ConfigurationError


def parse_range_us(
    from_time: str | None, to_time: str | None, names: tuple[str, str] = ("--from", "--to")
) -> tuple[int | None, int | None]:
    """Parse both ends of a range, called by these names, to µs since 1970; None if not given.

    Raises:
        ConfigurationError: a text is not a time, or the range is empty.
    """
    begin, end = names
    from_us, to_us = parse_moment_us(begin, from_time), parse_moment_us(end, to_time)
    if from_us is not None and to_us is not None and from_us >= to_us:
        what = "is the same moment as" if from_us == to_us else "is after"
        told = f"{begin} {from_time:.60} {what} {end} {to_time:.60}, and nothing starts between"
        raise ConfigurationError(f"{told}: let {begin} be the earlier")
    return from_us, to_us


def parse_moment_us(name: str, text: str | None) -> int | None:
    """Parse a time to µs since 1970; without a zone it is UTC.

    Raises:
        ConfigurationError: the text is not a time.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        msg = f"{name} is a time such as 2026-11-21T06:40:00Z, got {text!r:.60}"
        raise ConfigurationError(msg) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
