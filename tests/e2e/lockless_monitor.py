"""``hopwatch`` on a disk whose locks keep nobody out, as some network shares are: all who ask for one get it."""

from __future__ import annotations

import fcntl
import sys

from hopwatch.cli.main import main


def _granted(*_: object) -> None:
    """Grant a lock."""


if __name__ == "__main__":
    fcntl.flock = _granted
    sys.exit(main())
