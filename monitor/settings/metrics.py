"""``[metrics]``: address of the metrics endpoint for Prometheus, and its limit of series."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from hopwatch.monitor.settings.table import SettingsTable

MIN_SERIES: Final = 1_000
"""Lower bound of the limit: there is room for some streams beside the series of the monitor itself."""
MAX_SERIES: Final = 100_000
MAX_PORT: Final = 65_535
_ADDRESS: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")


class ListenAddress(NamedTuple):
    """Host and port to listen on."""

    host: str
    port: int


def _parse_address(value: object) -> ListenAddress:
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[3]) <= MAX_PORT:
        msg = f'an address is HOST:PORT, such as "127.0.0.1:9464", "0.0.0.0:9464" or "[::1]:9464"; got {value!r:.80}'
        raise ValueError(msg)
    return ListenAddress(match[1] or match[2], int(match[3]))


def _check_series(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_SERIES <= value <= MAX_SERIES:
        return value
    msg = f"most_series is a whole number from {MIN_SERIES:,} to {MAX_SERIES:,}, got {value!r:.80}"
    raise ValueError(msg)


class MetricsSettings(SettingsTable):
    """``[metrics]``: address of the endpoint, None if it is off, and the maximum number of series."""

    listen: Annotated[ListenAddress | None, BeforeValidator(_parse_address)] = None
    most_series: Annotated[int, BeforeValidator(_check_series)] = 10_000
