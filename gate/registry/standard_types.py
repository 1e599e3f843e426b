"""Types that every schema may name without defining them."""

from __future__ import annotations

from typing import Any, Final

NAMESPACE: Final = "hopwatch.types.v1"
MONEY: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Money",
    "namespace": NAMESPACE,
    "fields": [
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}},
        {"name": "currency", "type": "string"},
    ],
}
"""Amount of money, exact to nine places, with the code of its currency by ISO 4217."""
STANDARD_TYPES: Final = (MONEY,)
