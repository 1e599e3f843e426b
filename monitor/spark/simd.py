"""CPU features that numpy should not use in the workers on this processor.

The kernel sorts. On AMD's family 25 (Zen 3 and 4) numpy's AVX-512 sort is slower than its AVX2 sort, because storing
compressed vectors to memory is microcoded there: measured on such a machine, numpy 2.4, half a million 64-bit integers
at 46 ns each with AVX-512 and 10 ns with AVX2. numpy reads the choice from an environment variable when it is imported.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]  # it has no types
    __cpu_dispatch__,
    __cpu_features__,
)

VARIABLE: Final = "NPY_DISABLE_CPU_FEATURES"
_CPUINFO: Final = Path("/proc/cpuinfo")
_SLOW_FAMILY: Final = "25"


def choose_disabled_features(cpuinfo: str, dispatched: list[str]) -> str:
    """Return the value for the workers' environment, empty when nothing is to be disabled.

    ``cpuinfo`` is the text of Linux' /proc/cpuinfo, ``dispatched`` the features that this numpy has code for.
    """
    if _read_field(cpuinfo, "vendor_id") != "AuthenticAMD" or _read_field(cpuinfo, "cpu family") != _SLOW_FAMILY:
        return ""
    if "avx512f" not in _read_field(cpuinfo, "flags").split():
        return ""
    return " ".join(name for name in dispatched if name.startswith("AVX512") or name == "X86_V4")


def _read_field(cpuinfo: str, name: str) -> str:
    """Return the value of the first line of that name, empty without one."""
    found = re.search(rf"^{name}[ \t]*:(.*)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else ""


def detect_disabled_features() -> str:
    """Return the value for this machine's workers."""
    if not _CPUINFO.exists():
        return ""
    # A feature that the processor does not have must not be named: numpy would warn on every import.
    there = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    return choose_disabled_features(_CPUINFO.read_text("utf-8"), there)
