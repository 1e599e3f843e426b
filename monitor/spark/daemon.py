"""The process that Spark's Python workers are forked from: what they all need is imported here, once.

A worker otherwise spends its first second on imports, and the first trigger of a stream waits for several of them.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401 - imported for the workers, as all below
import pyarrow as pa  # noqa: F401
from pyspark import daemon
from pyspark.sql.pandas import serializers  # noqa: F401
from pyspark.sql.streaming import stateful_processor_util  # noqa: F401

from monitor.spark import decode, redeem, state  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
