"""Limits of the wire format; every reader checks them before it allocates memory."""

from __future__ import annotations

import re
from typing import Final

MAX_RECORD_BYTES: Final = 4 * 1024 * 1024
MAX_COUNT: Final = 65_536
MAX_REASONS: Final = 32
MAX_REASON_CHARS: Final = 64
MAX_DROPS: Final = 1_024
MAX_CAUSE_CHARS: Final = 64
MAX_LABELS: Final = 8
MAX_LABEL_CHARS: Final = 64
SCHEMA_LABEL: Final = "schema"
PARTITION_LABEL: Final = "partition"
OUT_PARTITION_LABEL: Final = "out_partition"
"""Label of the schema that wrote the messages of a batch."""
MAX_NAME_CHARS: Final = 128
MAX_ID_TEXT_CHARS: Final = 1_024
MAX_METRICS: Final = 8
MAX_HISTOGRAM_BYTES: Final = 65_536

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""Pattern of stream and node names; use it with ``fullmatch``."""

ID_BYTES: Final = 16
WINDOW_MS: Final = 60_000
WINDOW_US: Final = 60_000_000
NOT_STAMPED: Final = -(2**63)
"""Lag value of an absent stamp."""
NO_REASON: Final = 255
"""Reason index of an observation without a reason."""

TIMELESS_CAUSES: Final = frozenset({"bad event time", "implausible event time"})
"""Causes of drops with an unknown window: they are counted in the window in which they were stamped."""

MONITOR_STREAM: Final = "_hopwatch"
"""Stream of the monitor's own pulse; every monitor knows it, no report lists it."""
