"""Arguments of a count: checked, and counted where they are refused."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import ArrayLike

from hopwatch.probes import recorder
from hopwatch.probes.arrays import MessageIds, estimate_length, parse_ids
from hopwatch.probes.contract.batch import MetricsStamp
from hopwatch.probes.contract.fingerprints import Fingerprint, take_fingerprint
from hopwatch.probes.contract.lag_histograms import PackedLags
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import EventTime, describe_fault, event_time_us
from hopwatch.probes.lag_arguments import pack_lags
from hopwatch.probes.pending_counts import MAX_NUMBER, Count
from hopwatch.probes.recorder import Refusals

BAD_COUNT: Final = "bad count"


@dataclass(frozen=True, slots=True)
class CountArguments:
    """Arguments of a call that counts messages, as the host passed them."""

    event_time: EventTime
    number: int | None
    message_ids: MessageIds | None
    stamp: str
    size_bytes: int
    lags_ms: ArrayLike | None = None
    lag_counts: ArrayLike | None = None

    def check(self, at_us: int, max_age_us: int | None) -> Count:
        """Return the count as it is sent; of no messages there is no fingerprint to miss.

        Raises:
            ProbeError: a number, the ids or the stamp cannot be, or the event time is too old or ahead of the clock.
            ValueError: the event time or the lags cannot be.
        """
        if (self.number is None) is (self.message_ids is None):
            got = "neither" if self.number is None else "both"
            raise ProbeError(f"a count is a number, or the ids of the messages, got {got}")
        if self.stamp.upper() not in MetricsStamp.__members__:
            names = ", ".join(name.lower() for name in MetricsStamp.__members__)
            raise ProbeError(f"messages are counted at one of {names}, got {self.stamp!r:.40}")
        event_us = event_time_us(self.event_time)
        told = describe_fault(event_us, at_us, max_age_us, is_number=isinstance(self.event_time, int))
        if told is not None:
            raise ProbeError(told)
        printed: Fingerprint | None
        if self.message_ids is None:
            number = _check_number("a count", self.number)
            printed = None if number else Fingerprint()
        else:
            ids = parse_ids(self.message_ids)
            number, printed = len(ids), take_fingerprint(ids)
        size_bytes = _check_number("a size in bytes", self.size_bytes)
        window_start_ms = event_us // WINDOW_US * WINDOW_MS
        lags = self._pack_lags(number)
        return Count(window_start_ms, MetricsStamp[self.stamp.upper()], number, printed, size_bytes, lags)

    def _pack_lags(self, number: int) -> PackedLags:
        if self.lags_ms is None:
            if self.lag_counts is not None:
                raise ProbeError("counts of lags are of lags, got none of these")
            return b""
        return pack_lags(self.lags_ms, self.lag_counts, number)

    def refuse(self, at_ns: int, cause: str, max_age_us: int | None) -> Refusals:
        """Count the messages as refused in the window of their event time, or, where it is bad, in that of the call.

        Raises:
            ValueError: nobody knows how many they are.
        """
        refused = recorder.refuse_stamp(self.event_time, at_ns, cause, max_age_us)
        number = self.number if self.message_ids is None else estimate_length(self.message_ids)
        if type(number) is not int or not 0 <= number <= MAX_NUMBER:
            raise ValueError(f"{number!r:.40} messages cannot be counted")
        return Refusals({key: number * one for key, one in refused.items() if number})


def _check_number(what: str, number: Any) -> int:  # noqa: ANN401 - a host may pass anything
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise ProbeError(f"{what} is a whole number, got {type(number).__name__}")
    whole = operator.index(number)
    if not 0 <= whole <= MAX_NUMBER:
        raise ProbeError(f"{what} lies in 0 … 2^63 - 1, got {whole if abs(whole) < 1 << 128 else 'a greater one'}")
    return whole
