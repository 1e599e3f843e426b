"""Faults for tests: functions that raise, once or so many times, before or after they have done their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from hopwatch.probes import named, packing, recorder, sender
from hopwatch.probes.backlog import Backlog
from hopwatch.probes.sender import Sender
from hopwatch.probes.untold import Untold

UNDER_A_FLUSH: Final[tuple[tuple[Any, str], ...]] = (
    (sender, "encode"),
    (recorder, "record"),
    (recorder, "_of_singles"),
    (recorder, "_of_arrays"),
    (recorder, "_of_array"),
    (recorder, "_event_times"),
    (named, "of"),
    (named, "_of_one_type"),
    (named, "_each"),
    (recorder, "_stamped"),
    (recorder, "_paired"),
    (recorder, "_moved"),
    (recorder, "_refuse"),
    (recorder, "are_believed"),
    (recorder, "batches"),
    (recorder, "joined"),
    (recorder, "are_plausible"),
    (recorder, "meant_us"),
    (recorder, "first_fault"),
    (recorder, "refused"),
    (recorder, "refused_one"),
    (packing, "_packed"),
    (packing, "_lags"),
    (packing, "_reasons"),
    (Backlog, "_recorded"),
    (Backlog, "_odd"),
    (Backlog, "pack"),
    (Backlog, "_take"),
    (Untold, "add"),
    (Untold, "first"),
    (Untold, "remove"),
    (Untold, "__len__"),
    (Sender, "flush"),
    (Sender, "_count"),
    (Sender, "_hole_us"),
    (Sender, "_moment_us"),
    (Sender, "_send_left"),
    (Sender, "_send_packed"),
    (Sender, "_send_first"),
    (Sender, "_drop_first"),
    (Sender, "_send_empty"),
    (Sender, "_count_refused"),
    (Sender, "_count_failed"),
    (Sender, "_count_one_failed"),
    (Sender, "_observations"),
    (Sender, "_batch"),
    (Sender, "_to_tell"),
    (Sender, "_tell_causes"),
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
