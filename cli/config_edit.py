"""Edit of a configuration by a command: the change is shown, checked, and written in one step."""

from __future__ import annotations

import difflib
from pathlib import Path

from hopwatch.cli.configuration import load_streams
from hopwatch.monitor.errors import ConfigurationError


def diff_texts(config: Path, before: str, after: str) -> list[str]:
    """Return the lines that change, those that are removed with a minus and those that are added with a plus."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), str(config), str(config), "", "", 0, ""))


def replace_file(config: Path, text: str) -> None:
    """Write a configuration in one step, once it was read without an error.

    Raises:
        SettingsError: the edited file would be wrong.
        ConfigurationError: it cannot be written.
    """
    target = config.resolve()
    draft = target.with_name(f".{target.name}.new")
    try:
        draft.write_bytes(text.encode())
        draft.chmod(target.stat().st_mode & 0o777)
        load_streams(draft)
        draft.replace(target)
    except OSError as error:
        raise ConfigurationError(f"the configuration {config} cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
