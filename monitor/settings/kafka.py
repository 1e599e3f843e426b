"""``[transport.kafka]``: what lets a client in. A secret stands here, in the environment or in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator

from hopwatch.monitor.settings.table import Table
from hopwatch.probes.contract.kafka import FILES, SECRETS, KafkaAccess, read_secret

_PAIRS: Final = tuple((secret, f"{secret}_file") for secret in SECRETS)
_FORMS: Final = frozenset(form for pair in _PAIRS for form in pair)


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
        said = {name: value.get_secret_value() if name in SECRETS else value for name, value in self}
        said |= {secret: read_secret(secret, said, _text) for secret in SECRETS}
        return KafkaAccess(**{name: said[name] for name in KafkaAccess.__dataclass_fields__})

    @field_validator(*(file for _, file in _PAIRS))
    @classmethod
    def _says_the_secret(cls, file: str, info: ValidationInfo) -> str:
        # Read now, so that what is wrong is told before anything starts, and with its own line.
        secret = str(info.field_name).removesuffix("_file")
        value = info.data.get(secret, SecretStr(""))
        read_secret(secret, {secret: value.get_secret_value(), f"{secret}_file": file}, _text)
        return file

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # Made now, for the same reason.
        _ = self.access
        return self


def anchored(said: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return what a layer says of access with its relative files made absolute from ``base``."""
    files = {key: str(base / file) for key, file in said.items() if key in FILES and isinstance(file, str) and file}
    return {**said, **files}


def whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a layer says of access so that a secret of it, in either form, unsays both forms in layers behind.

    What is empty says nothing.
    """
    told = {key: value for key, value in said.items() if key not in _FORMS or value != ""}
    unsaid = {form: "" for pair in _PAIRS if any(form in told for form in pair) for form in pair}
    return unsaid | told


def _text(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        msg = f"the file {file} cannot be read: {error.strerror}"
        raise ValueError(msg) from None
