"""Faults for tests: functions that raise, once or so many times, before or after they have done their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from hopwatch.probes import id_columns, packing, recorder, sender
from hopwatch.probes.backlog import Backlog
from hopwatch.probes.drop_counts import DropCounts
from hopwatch.probes.drop_ledger import DropLedger
from hopwatch.probes.sender import Sender

UNDER_A_FLUSH: Final[tuple[tuple[Any, str], ...]] = (
    (sender, "encode"),
    (recorder, "build_batches"),
    (recorder, "_record_stamps"),
    (recorder, "_record_arrays"),
    (recorder, "_record_array"),
    (recorder, "_parse_event_times"),
    (id_columns, "encode_ids"),
    (id_columns, "_encode_same_type"),
    (id_columns, "_encode_each"),
    (recorder, "_build_columns"),
    (recorder, "_pair_stamps"),
    (recorder, "_move_late"),
    (recorder, "_count_by_window"),
    (recorder, "is_representable"),
    (recorder, "pack_batches"),
    (recorder, "concatenate"),
    (recorder, "is_plausible"),
    (recorder, "guess_moments_us"),
    (recorder, "find_first_fault"),
    (recorder, "refuse_array"),
    (recorder, "refuse_stamp"),
    (packing, "_pack_batch"),
    (packing, "_pack_lags"),
    (packing, "_pack_reasons"),
    (Backlog, "_build_batches"),
    (Backlog, "_refuse_call"),
    (Backlog, "pack"),
    (Backlog, "_hold_calls"),
    (DropCounts, "add"),
    (DropCounts, "next_drops"),
    (DropCounts, "remove"),
    (DropCounts, "__len__"),
    (Sender, "flush"),
    (DropLedger, "_count"),
    (DropLedger, "find_hole_end_us"),
    (DropLedger, "report_again"),
    (DropLedger, "remove"),
    (DropLedger, "_wall_us"),
    (Sender, "_find_complete_us"),
    (Sender, "_send_leftover"),
    (Sender, "_send_packed"),
    (Sender, "_send_first"),
    (Sender, "_drop_first"),
    (Sender, "_send_empty"),
    (Sender, "_count_refused"),
    (Sender, "_count_failed"),
    (Sender, "_count_one_failed"),
    (Sender, "_build_observations"),
    (Sender, "_build_batch"),
    (DropLedger, "next_drops"),
    (DropLedger, "log_causes"),
    (Sender, "_send"),
    (Sender, "_wall_us"),
    (Sender, "tick"),
    (Sender, "step"),
)
"""Every function that a flush calls, and the loop's own."""


@contextmanager
def raising(owner: Any, name: str, error: type[Exception], times: int, *, is_done: bool = False) -> Iterator[None]:  # noqa: ANN401 - a module or a class
    """Have a function raise the first so many times; with ``is_done`` after it has done its work."""
    real: Callable[..., object] = getattr(owner, name)
    left = times

    def faulty(*args: object, **kwargs: object) -> object:
        nonlocal left
        if not left:
            return real(*args, **kwargs)
        left -= 1
        if is_done:
            real(*args, **kwargs)
        raise error(name)

    with patch.object(owner, name, faulty):
        yield
