"""Tests of what is said where the gate is not installed."""

from __future__ import annotations

import pytest

from hopwatch.demo.entrance.packages import GateMissingError, check_packages


def test_missing_packages_are_named_with_what_brings_them() -> None:
    """Before anything starts, as a dependency that is not there; where all are, nothing is said."""
    check_packages()
    with pytest.raises(GateMissingError) as raised:
        check_packages(("orjson", "no_gate", "no_door"))
    assert str(raised.value) == (
        "--gate needs no_gate, no_door, not installed here: pip install 'hopwatch[monitor,taps,gate]'"
    )
    assert raised.value.exit_code == 3
