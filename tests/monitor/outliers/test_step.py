"""Tests of how the step is compiled: it works where nothing can be kept on disk."""

from __future__ import annotations

from collections.abc import Callable

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
