"""``[transport.kafka]``: what lets a client in. A secret stands here, in the environment or in a file of its own."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import SecretStr, model_validator

from monitor.settings.table import Table
from probes.contract.kafka import SECRETS, KafkaAccess


class KafkaSettings(Table):
    """The values of :class:`KafkaAccess`; secrets may stand in files."""

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: SecretStr = SecretStr("")
    sasl_password_file: str = ""
    ssl_ca_file: str = ""
    ssl_certificate_file: str = ""
    ssl_key_file: str = ""
    ssl_key_password: SecretStr = SecretStr("")
    ssl_key_password_file: str = ""

    @cached_property
    def access(self) -> KafkaAccess:
        """The same, as clients want it."""
        said = self.model_dump(exclude={f"{secret}_file" for secret in SECRETS})
        for secret in SECRETS:
            file = getattr(self, f"{secret}_file")
            said[secret] = _secret_in(file) if file else getattr(self, secret).get_secret_value()
        return KafkaAccess(**said)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # Read now, so that what is wrong is told before anything starts.
        _ = self.access
        return self


def _secret_in(file: str) -> str:
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        msg = f"the file {file} cannot be read: {error.strerror}"
        raise ValueError(msg) from None
