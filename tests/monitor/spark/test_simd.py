"""Tests of the choice of numpy's vector code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hopwatch.monitor.spark import simd

DISPATCHED = ["AVX2", "X86_V4", "AVX512_ICL", "AVX512_SPR"]
CPUINFO = """processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model\t\t: 17
model name\t: Some processor
flags\t\t: fpu {flags} avx2

processor\t: 1
vendor_id\t: SomethingElse
"""


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "disabled"),
    [
        ("AuthenticAMD", "25", "avx512f avx512cd", "X86_V4 AVX512_ICL AVX512_SPR"),
        ("AuthenticAMD", "25", "sse4_2", ""),
        ("AuthenticAMD", "26", "avx512f", ""),
        ("AuthenticAMD", "2", "avx512f", ""),
        ("GenuineIntel", "25", "avx512f", ""),
    ],
)
def test_only_the_slow_sort_of_one_family_is_disabled(vendor: str, family: str, flags: str, disabled: str) -> None:
    """AMD's family 25 with AVX-512; every other processor keeps all that numpy has for it."""
    cpuinfo = CPUINFO.format(vendor=vendor, family=family, flags=flags)
    assert simd.choose_disabled_features(cpuinfo, DISPATCHED) == disabled


@pytest.mark.parametrize("cpuinfo", ["", "Processor: ARMv8\nFeatures\t: fp asimd\n", "vendor_id"])
def test_a_processor_that_tells_nothing_keeps_all(cpuinfo: str) -> None:
    """Other architectures write other lines."""
    assert simd.choose_disabled_features(cpuinfo, DISPATCHED) == ""


def test_a_system_without_cpuinfo_keeps_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only Linux has that file."""
    monkeypatch.setattr(simd, "_CPUINFO", tmp_path / "cpuinfo")
    assert simd.detect_disabled_features() == ""


def test_numpy_takes_the_value_without_a_warning() -> None:
    """On this machine, whatever it is: a feature that is not there must not be named."""
    command = [sys.executable, "-W", "error", "-c", "import numpy; numpy.sort(numpy.arange(9))"]
    run = subprocess.run(
        command, env={simd.VARIABLE: simd.detect_disabled_features()}, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
