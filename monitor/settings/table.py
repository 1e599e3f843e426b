"""Base class of the tables of ``hopwatch.toml``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsTable(BaseModel):
    """A table of the file: immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
