"""``[otlp]``: receiver that the results of windows are sent to as metrics."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator

from hopwatch.monitor.settings import receivers
from hopwatch.monitor.settings.table import SettingsTable

METRICS_PATH: Final = "/v1/metrics"


class OtlpSettings(SettingsTable):
    """``[otlp]``: a receiver of OTLP over HTTP, such as a collector."""

    url: Annotated[str, AfterValidator(receivers.check_url)]
    ca_file: Annotated[str, AfterValidator(receivers.check_ca_file)] = ""

    @property
    def metrics_url(self) -> str:
        """The URL that metrics are posted to."""
        return f"{self.url.rstrip('/')}{METRICS_PATH}"
