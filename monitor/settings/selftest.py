"""``[selftest]``: keys of the self-test."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator

from hopwatch.monitor.settings.table import SettingsTable

MIN_MESSAGES: Final = 60
MAX_MESSAGES: Final = 6_000


def _check_messages(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_MESSAGES <= value <= MAX_MESSAGES:
        return value
    msg = f"messages_per_minute is a whole number from {MIN_MESSAGES} to {MAX_MESSAGES:,}, got {value!r:.80}"
    raise ValueError(msg)


class SelftestSettings(SettingsTable):
    """``[selftest]``: a stream of the monitor's own, which is compared with what was injected into it."""

    messages_per_minute: Annotated[int, BeforeValidator(_check_messages)] = 240
