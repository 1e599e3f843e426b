"""Start of the program ``hopwatch``: what is imported before the command runs can be interrupted too."""

from __future__ import annotations

from typing import Final

INTERRUPTED_EXIT_CODE: Final = 130


def run_program() -> int:
    """Run the command of this process; return its exit code, which is 130 after Ctrl-C while modules are imported."""
    try:
        from hopwatch.cli.main import main
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    return main()
