"""What all tests share: how hypothesis goes about its cases."""

from __future__ import annotations

from hypothesis import settings

# How long a case takes says more about the machine and its other guests than about the code.
settings.register_profile("hopwatch", deadline=None)
settings.load_profile("hopwatch")
