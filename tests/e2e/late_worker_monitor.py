"""``hopwatch`` whose first Python worker of the state never connects, as on a machine that is too busy to start it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from hopwatch.cli.main import main

_PYTHON: Final = """#!/bin/sh
case "$*" in
*transform_with_state_driver_worker*) [ -e "$0.late" ] || { touch "$0.late"; exec sleep 30; } ;;
esac
exec "%s" "$@"
"""

if __name__ == "__main__":
    python = Path(sys.argv[-1]).with_name("python")
    python.write_text(_PYTHON % sys.executable)
    python.chmod(0o700)
    sys.executable = str(python)
    sys.exit(main())
