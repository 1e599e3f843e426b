"""Process that Spark forks its Python workers from: imports what they all need, once.

A worker otherwise spends its first second on imports, and the first trigger of a stream waits for several of them.
"""

from __future__ import annotations

import sys

# Spark names its own copy of pyspark first, a zip of sources that every start would compile anew.
sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]

import pandas as pd  # noqa: E402, F401 - imported for the workers, as all below
import pyarrow as pa  # noqa: E402, F401
from pyspark import daemon  # noqa: E402
from pyspark.sql.pandas import serializers  # noqa: E402, F401
from pyspark.sql.streaming import stateful_processor_util  # noqa: E402, F401

from hopwatch.monitor.garbage_collection import collect_rarely  # noqa: E402
from hopwatch.monitor.spark import claim_reader, decoder, window_state  # noqa: E402, F401

if __name__ == "__main__":
    collect_rarely()
    daemon.manager()
