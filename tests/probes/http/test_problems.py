"""Tests of JSON pointers to places in a body."""

from __future__ import annotations

import pytest

from hopwatch.probes.http.problems import json_pointer


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ([], ""),
        (["a", 0, ""], "/a/0/"),
        (["a/b", "c~d"], "/a~1b/c~0d"),
        (["x" * 200], f"/{'x' * 200}"),
        (["x" * 201, "y"], f"/{'x' * 200}…/y"),
    ],
)
def test_a_place_is_a_pointer_of_names_that_are_bounded(place: list[str | int], told: str) -> None:
    """As RFC 6901 writes it; a name may be a stranger's, and as long as his body."""
    assert json_pointer(place) == told
