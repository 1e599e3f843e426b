"""DuckDB on two threads, from Parquet: a bitmask per message id, exact percentiles."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from bench.alone import CORES, Json
from bench.found import by_key, from_columns
from bench.generate import Made
from bench.peers import bits
from bench.truth import QUANTILES, Found, Key
from bench.work import NODES, Work
