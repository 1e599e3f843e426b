"""``[metrics]``: address of the metrics endpoint for Prometheus, and its limit of series."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator

from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.probes.contract.addresses import ListenAddress, parse_listen_address

MIN_SERIES: Final = 1_000
"""Lower bound of the limit: there is room for some streams beside the series of the monitor itself."""
MAX_SERIES: Final = 100_000


def _check_series(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_SERIES <= value <= MAX_SERIES:
        return value
    msg = f"most_series is a whole number from {MIN_SERIES:,} to {MAX_SERIES:,}, got {value!r:.80}"
    raise ValueError(msg)


class MetricsSettings(SettingsTable):
    """``[metrics]``: address of the endpoint, None if it is off, and the maximum number of series."""

    listen: Annotated[ListenAddress | None, BeforeValidator(parse_listen_address)] = None
    most_series: Annotated[int, BeforeValidator(_check_series)] = 16_000
