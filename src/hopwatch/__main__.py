"""``python -m hopwatch`` is the command ``hopwatch``."""

import sys

from hopwatch.cli.entry import run_program

if __name__ == "__main__":
    sys.exit(run_program())
