"""Books of one service: up to which moment all of its SDKs have told everything.

A killed process tells nobody that it was there. So a service is told only while as many SDKs are heard as may run of it
at once: then there is no other one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.taps.otlp.sdk_account import SdkAccount, ToldPeriod
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading

ABSENT_S: Final = 180.0
"""Time after which an SDK of which nothing is heard has ended: by default metrics come every minute."""
MAX_SDKS: Final = 1_000
"""SDKs of one service that are told apart, at most."""


class ServiceProgress(NamedTuple):
    """Progress of a service: its missing messages, the moment up to which it is told, and whether there is a gap.

    What was before the first moment is not known either; a sender begins with a gap of its own.
    """

    periods: list[ToldPeriod]
    until_ns: int | None
    has_gap: bool


class ServiceBooks:
    """Books of one service, of which at most ``instances`` run at once; not thread-safe."""

    def __init__(self, instances: int) -> None:
        """Start without an SDK."""
        self._instances = instances
        self._sdks: dict[str, SdkAccount] = {}
        self._until_ns: int | None = None

    def add_spans(self, instance: str | None, spans_ns: NDArray[np.int64], now_s: float) -> None:
        """Add spans of an SDK that came for the first time: starts and ends, in two columns, in ns since 1970."""
        self._find_sdk(instance).add_spans(spans_ns, now_s)

    def add_reading(self, instance: str | None, reading: SdkReading, now_ns: int, now_s: float) -> None:
        """Add what an SDK says of its spans, and what came at a time of day, in ns since 1970."""
        self._find_sdk(instance).add_reading(reading, now_ns, now_s)

    def advance(self, now_s: float) -> ServiceProgress:
        """Return what became known since the last call."""
        self._sdks = {name: sdk for name, sdk in self._sdks.items() if now_s - sdk.heard_s < ABSENT_S}
        periods = [period for sdk in self._sdks.values() for period in sdk.take_told(now_s)]
        has_gap = any(period.missing is None for period in periods)
        since_ns = [sdk.told_since_ns for name, sdk in self._sdks.items() if name and sdk.told_since_ns is not None]
        if len(since_ns) != self._instances or len(self._sdks) != self._instances:
            return ServiceProgress(periods, None, has_gap)
        until_ns = min(sdk.told_until_ns for sdk in self._sdks.values())
        if self._until_ns is not None:
            has_gap = has_gap or max(since_ns) > self._until_ns
            if until_ns <= self._until_ns:
                return ServiceProgress(periods, None, has_gap)
        self._until_ns = until_ns
        return ServiceProgress(periods, until_ns, has_gap)

    def _find_sdk(self, instance: str | None) -> SdkAccount:
        # Without an id several SDKs may be behind one name: it is never told.
        name = instance or ""
        if name not in self._sdks:
            if len(self._sdks) >= MAX_SDKS:
                self._sdks.pop(next(iter(self._sdks)))
            self._sdks[name] = SdkAccount()
        return self._sdks[name]
