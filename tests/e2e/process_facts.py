"""Program that says how it was started, as JSON, and ends with its last argument as its exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    facts = {
        "arguments": sys.argv[1:],
        "folder": str(Path.cwd()),
        "first on the path": sys.path[0],
        "variable": os.environ["FACT"],
        "handlers": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "is a leader": os.getsid(0) == os.getpid(),
    }
    print(json.dumps(facts))  # noqa: T201 - what it is for
    print("words", file=sys.stderr)  # noqa: T201 - as above
    sys.exit(int(sys.argv[-1]))
