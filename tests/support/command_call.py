"""``hopwatch`` called in this process: for tests whose point is what it says, not that it is a program."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from hopwatch.cli.main import main


def called(
    *words: str, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return what a command ends with and says, called in a folder, with more variables in the environment."""
    out, err = io.StringIO(), io.StringIO()
    there, more = chdir(folder or Path.cwd()), mock.patch.dict(os.environ, environ or {})
    with there, more, redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
