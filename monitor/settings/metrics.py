"""``[metrics]``: where the page for Prometheus is served, and how large it may be."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from hopwatch.monitor.metrics.folding import MIN_SERIES
from hopwatch.monitor.settings.table import Table

MOST_SERIES: Final = 100_000
MOST_PORT: Final = 65_535
_ADDRESS: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def _address(value: object) -> Address:
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[3]) <= MOST_PORT:
        msg = f'an address is HOST:PORT, such as "127.0.0.1:9464", "0.0.0.0:9464" or "[::1]:9464"; got {value!r:.80}'
        raise ValueError(msg)
    return Address(match[1] or match[2], int(match[3]))


def _series(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_SERIES <= value <= MOST_SERIES:
        return value
    msg = f"most_series is a whole number from {MIN_SERIES:,} to {MOST_SERIES:,}, got {value!r:.80}"
    raise ValueError(msg)


class MetricsSettings(Table):
    """``[metrics]``: where the page is served, none where it is not, and how many series are on it at most."""

    listen: Annotated[Address | None, BeforeValidator(_address)] = None
    most_series: Annotated[int, BeforeValidator(_series)] = 10_000
