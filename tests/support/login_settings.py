"""Settings of a dashboard with a login."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "T0P-5ECRET"
LOGIN: Final = f"""[dashboard.login]
url = "https://hopwatch.example/"
provider = "https://id.example/realms/ops"
client_id = "hopwatch"
client_secret = "{HIDDEN}"
"""
SIGNING: Final = "0123456789abcdef"
