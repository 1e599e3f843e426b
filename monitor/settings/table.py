"""What all tables of ``hopwatch.toml`` have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsTable(BaseModel):
    """A table of the file: it cannot be changed, and knows no other keys than its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
