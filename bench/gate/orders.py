"""The events of the bench: orders with items, as an Avro schema has them, each under an id of its own."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

STREAM: Final = "orders"
BATCH: Final = 100
SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "bench.v1",
    "fields": [
        {"name": "order", "type": "string"},
        {"name": "customer", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "currency", "type": {"type": "enum", "name": "Currency", "symbols": ["EUR", "USD"]}},
        {"name": "paid", "type": "boolean"},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
                },
            },
        },
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
_RANDOM_BYTES: Final = 10


def order(number: int) -> dict[str, Any]:
    """Return an order, with one to three items."""
    return {
        "order": f"o-{number:06}",
        "customer": number % 1_000,
        "price": number * 0.01,
        "currency": ("EUR", "USD")[number % 2],
        "paid": number % 3 > 0,
        "items": [{"sku": f"sku-{(number + at) % 50}", "count": at + 1} for at in range(number % 3 + 1)],
        "note": None if number % 4 else f"leave it at door {number % 7}",
    }


_ORDERS: Final = [json.dumps(order(number)) for number in range(10 * BATCH)]


def ids(count: int) -> list[str]:
    """Return so many new UUIDs of version 7."""
    moment = f"{time.time_ns() // 1_000_000:012x}"
    chance = os.urandom(_RANDOM_BYTES * count).hex()
    begins = f"{moment[:8]}-{moment[8:]}-7"
    return [
        # The variant of RFC 9562 makes this digit one of four.
        f"{begins}{chance[at : at + 3]}-{'89ab'[int(chance[at + 3], 16) & 3]}{chance[at + 4 : at + 7]}"
        f"-{chance[at + 7 : at + 19]}"
        for at in range(0, 2 * _RANDOM_BYTES * count, 2 * _RANDOM_BYTES)
    ]


def encode_order(number: int) -> bytes:
    """Return an order as JSON."""
    return _ORDERS[number % len(_ORDERS)].encode()


def encode_batch(number: int, count: int = BATCH) -> bytes:
    """Return the body of a request with so many orders, a divisor of 1,000, whose ids are new."""
    first = number * count % len(_ORDERS)
    of_batch = zip(ids(count), _ORDERS[first : first + count], strict=True)
    return ("[" + ",".join(f'{{"id":"{event_id}","data":{data}}}' for event_id, data in of_batch) + "]").encode()
