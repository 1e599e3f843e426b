"""Buffer of settlements, which are handed on together: a transaction for each would cost more than its request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from hopwatch.deliver.change_signal import ChangeSignal
from hopwatch.deliver.interfaces import SettlementError, SettlementSink
from hopwatch.deliver.settlement import Settlement

MAX_SETTLEMENTS: Final = 1_000
"""Number of settlements that are handed on at once, without a wait for more."""
INTERVAL_S: Final = 0.05
_RETRY_S: Final = 0.1
_MAX_RETRY_S: Final = 5.0


class SettlementBuffer:
    """Buffer before a sink; what the sink could not make durable is handed on again, before what came later."""

    def __init__(
        self,
        sink: SettlementSink,
        is_in_hand: Callable[[Settlement], bool],
        forget: Callable[[Sequence[Settlement], Sequence[Settlement]], None],
    ) -> None:
        """Take the sink, and two functions.

        ``is_in_hand`` says whether the message of a settlement is still in hand, without which it is not handed on,
        and ``forget`` is called with the settlements that were handed on, and those of them that are durable.
        """
        self._sink, self._is_in_hand, self._forget = sink, is_in_hand, forget
        self._waiting: list[Settlement] = []
        self._added = ChangeSignal()
        self._is_closed = False

    def add_settlement(self, settlement: Settlement) -> None:
        """Add one."""
        self._waiting.append(settlement)
        if len(self._waiting) in {1, MAX_SETTLEMENTS}:
            self._added.send()

    def close(self) -> None:
        """Let :meth:`run` end once all are handed on."""
        self._is_closed = True
        self._added.send()

    async def run(self) -> None:
        """Hand settlements on until the buffer is closed and empty; an error of the sink ends it."""
        retry_s = _RETRY_S
        while self._waiting or not self._is_closed:
            if not self._waiting:
                await self._added.wait(None)
            if len(self._waiting) < MAX_SETTLEMENTS and not self._is_closed:
                await self._added.wait(INTERVAL_S)
            settlements, self._waiting = [one for one in self._waiting if self._is_in_hand(one)], []
            if not settlements:
                continue
            try:
                durable = await self._sink.settle(settlements)
            except SettlementError:
                self._waiting = settlements + self._waiting
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _MAX_RETRY_S)
            else:
                retry_s = _RETRY_S
                self._forget(settlements, durable)
