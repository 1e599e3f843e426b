"""``python -m hopwatch`` is the command ``hopwatch``."""

import sys

from hopwatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
