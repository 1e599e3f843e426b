"""Tests of how the step is compiled: where nothing can be kept on disk, and once for all threads."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

from hopwatch.monitor.outliers import step


def test_where_nothing_can_be_kept_it_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without a place for it, as in a container that cannot write, is no failure."""
    asked: list[bool] = []

    def njit(function: Callable[[int], int], *, cache: bool = False, **_: object) -> Callable[[int], int]:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr(numba, "njit", njit)
    assert step._compile_function(abs)(-3) == 3
    assert asked == [True, False]


def test_threads_that_ask_at_once_share_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiles, the others wait: a warm-up does not compile it a second time."""
    asked: list[str] = []

    def compile_slowly(function: Callable[..., object]) -> Callable[..., object]:
        asked.append(function.__name__)
        time.sleep(0.01)
        return function

    for function in step._functions:
        # What is compiled takes the place of what is not.
        monkeypatch.setattr(step, function.__name__, getattr(step, function.__name__))
    monkeypatch.setattr(step, "_compile_function", compile_slowly)
    monkeypatch.setattr(step, "_compile_step", functools.cache(step._compile_step.__wrapped__))
    with ThreadPoolExecutor(4) as threads:
        compiled = [threads.submit(step.compile_step) for _ in range(4)]
    assert len({one.result() for one in compiled}) == 1
    assert sorted(asked) == sorted(function.__name__ for function in step._functions)
