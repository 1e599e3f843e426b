"""Process that sends one notification by Apprise and exits, so that nothing of a plugin outlives it.

It reads a JSON object of ``urls``, ``title``, ``body`` and ``type`` from its standard input and writes one JSON text:
an empty one when all services took it, else why not, without any URL.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from contextlib import redirect_stdout
from typing import Final

import apprise

MEMORY_BYTES: Final = 2 * 1024**3
"""Address space of the process: a service that answers without end fails here, and not in the monitor."""


def notify(urls: list[str], title: str, body: str, kind: str) -> str:
    """Hand a notification to the services at ``urls``; return why it failed, an empty text when all took it."""
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    services = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Hopwatch", secure_logging=True))
    services.add(urls)
    try:
        is_taken = services.notify(body=body, title=title, notify_type=apprise.NotifyType(kind), body_format="text")
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and its text may name a URL
        return f"Apprise fails with {type(error).__name__}"
    return "" if is_taken else "Apprise could not reach all of its services"


def main() -> None:
    """Do what standard input says."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    request = json.load(sys.stdin)
    # What a plugin prints is no answer.
    with redirect_stdout(sys.stderr):
        answer = notify(request["urls"], request["title"], request["body"], request["type"])
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
