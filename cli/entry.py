"""Start of the program ``hopwatch``: what is imported before the command runs may be interrupted, or not installed."""

from __future__ import annotations

import sys
from typing import Final

INTERRUPTED_EXIT_CODE: Final = 130
MISSING_EXIT_CODE: Final = 3


def run_program() -> int:
    """Run the command of this process; return its exit code, which is 130 after Ctrl-C while modules are imported."""
    try:
        from hopwatch.cli.main import main
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "hopwatch":
            raise
        # Without extras hopwatch is a library, which services stamp with.
        told = f"hopwatch: the program needs the Python package {error.name!r}, which is not installed"
        sys.stderr.write(f"{told}: pip install 'hopwatch[monitor]', or 'hopwatch[taps]' for taps alone\n")
        return MISSING_EXIT_CODE
    return main()
