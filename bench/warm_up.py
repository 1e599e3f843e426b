"""The first value that a process gives the detector: it is compiled where no process did before, or read from disk."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from bench.contestant import Json


def run_first_value(folder: Path, cache: str) -> Json:
    """Time the first call, ``cache`` being where the compiled detector is kept."""
    del folder
    os.environ["NUMBA_CACHE_DIR"] = cache
    began_s = time.perf_counter()
    # Where it is kept is read when numba is imported.
    from hopwatch.monitor.outliers import detector, state  # noqa: PLC0415

    imported_s = time.perf_counter()
    detector.score_values(state.new_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1))
    return {"import_s": imported_s - began_s, "first_s": time.perf_counter() - imported_s}
