"""``[transport.kafka]``: authentication of Kafka clients. A secret is set here, in the environment or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator

from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.probes.contract.kafka import FILES, SECRETS, KafkaAccess, read_secret

_SECRET_FORMS: Final = tuple((secret, f"{secret}_file") for secret in SECRETS)
_SECRET_KEYS: Final = frozenset(form for pair in _SECRET_FORMS for form in pair)


class KafkaSettings(SettingsTable):
    """Values of :class:`KafkaAccess`; secrets may be read from files."""

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
        """Access in the form that clients take."""
        said = {name: value.get_secret_value() if name in SECRETS else value for name, value in self}
        said |= {secret: read_secret(secret, said, _read_text) for secret in SECRETS}
        return KafkaAccess(**{name: said[name] for name in KafkaAccess.__dataclass_fields__})

    @field_validator(*(file for _, file in _SECRET_FORMS))
    @classmethod
    def _check_secret_file(cls, file: str, info: ValidationInfo) -> str:
        # Read now, so that an error is reported before anything starts, with its own line.
        secret = str(info.field_name).removesuffix("_file")
        value = info.data.get(secret, SecretStr(""))
        read_secret(secret, {secret: value.get_secret_value(), f"{secret}_file": file}, _read_text)
        return file

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        # Built now, for the same reason.
        _ = self.access
        return self


def resolve_paths(said: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Resolve relative paths of files in a layer from ``base``."""
    files = {key: str(base / file) for key, file in said.items() if key in FILES and isinstance(file, str) and file}
    return {**said, **files}


def reset_other_form(said: Mapping[str, Any]) -> dict[str, Any]:
    """Make a secret of a layer override both of its forms, key and file, in the layers below.

    An empty value counts as missing.
    """
    told = {key: value for key, value in said.items() if key not in _SECRET_KEYS or value != ""}
    unsaid = {form: "" for pair in _SECRET_FORMS if any(form in told for form in pair) for form in pair}
    return unsaid | told


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        msg = f"the file {file} cannot be read: {error.strerror}"
        raise ValueError(msg) from None
