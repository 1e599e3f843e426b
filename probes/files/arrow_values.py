"""Values of Arrow arrays as NumPy's, and back, over their buffers.

Arrow's own ways, and its scalars, look for pandas and import it where it is installed, which takes longer than a
million rows do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def find_nulls(column: pa.Array) -> NDArray[np.bool_]:
    """Return which values of a column are null."""
    count, bits = len(column), column.buffers()[0] if column.null_count else None
    if bits is None:
        return np.full(count, column.null_count > 0)
    first = column.offset // 8
    found = np.unpackbits(np.frombuffer(bits, np.uint8)[first:], bitorder="little")
    is_null: NDArray[np.bool_] = found[column.offset - 8 * first :][:count] == 0
    return is_null


def get_numbers(column: pa.Array, absent: int) -> NDArray[Any]:
    """Return the values of a column of numbers; ``absent`` where there is none."""
    dtype, data = column.type.to_pandas_dtype(), column.buffers()[1]
    numbers = np.frombuffer(data, dtype)[column.offset :][: len(column)] if data is not None else np.empty(0, dtype)
    return np.where(find_nulls(column), absent, numbers) if column.null_count else numbers


def build_column(values: NDArray[Any], kind: pa.DataType, is_absent: NDArray[np.bool_]) -> pa.Array:
    """Return numbers as a column; they have the width of its type."""
    return pa.Array.from_buffers(kind, len(values), [build_validity(is_absent), pa.py_buffer(values)])


def build_validity(is_absent: NDArray[np.bool_]) -> pa.Buffer | None:
    """Return the bitmap of what is there; None if all is."""
    return pa.py_buffer(np.packbits(~is_absent, bitorder="little")) if is_absent.any() else None
