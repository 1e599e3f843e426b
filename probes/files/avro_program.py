"""Programs that read the fields of an Avro schema out of many records at once.

A schema becomes a list of steps, one for each value that a record has; a compiled loop walks them. Only values that are
asked for are kept: a number, or where its bytes lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.files.errors import MappingError, UnreadableFileError, describe_missing_column

MAX_DEPTH: Final = 32
MAX_STEPS: Final = 20_000
MAX_TYPES: Final = 100_000
"""Types that a schema's text stands for at most: a record without fields takes no step, and may be named by many."""
MAX_EMPTY: Final = 65_536
"""Values of an array beyond the bytes that are left, at most: each takes none."""

NULL, BOOLEAN, LONG, FLOAT, DOUBLE, BYTES, FIXED, UNION, BLOCKS, REPEAT, JUMP = range(11)
"""What a step reads, or where it goes on."""
ABSENT: Final = -1
CUT: Final = -1
"""End of a number that is cut, or too long."""
NO_SLOT: Final = -1
_PLAIN: Final = {
    "null": NULL, "boolean": BOOLEAN, "int": LONG, "long": LONG, "float": FLOAT, "double": DOUBLE,
    "bytes": BYTES, "string": BYTES, "enum": LONG,
}  # fmt: skip

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


@dataclass(slots=True)
class Slot:
    """Value that is kept of each record, with its type in the schema: one, or those of a union."""

    types: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class SchemaProgram:
    """Steps (operation, two arguments, slot), targets of unions, and the slots by their names."""

    steps: list[list[int]] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    slots: dict[str, Slot] = field(default_factory=dict)


def compile_schema(schema: Any, columns: Sequence[str]) -> SchemaProgram:  # noqa: ANN401 - JSON
    """Compile a record's schema.

    Raises:
        MappingError: a column is not there.
        UnreadableFileError: the schema is no record's, or holds itself.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise UnreadableFileError("its schema is that of no record")
    compiler = _Compiler(columns)
    try:
        compiler.add(schema, (), "", 0)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFileError(f"its schema is none ({type(error).__name__} {error!s:.60})") from None
    missing = next((name for name in columns if name not in compiler.program.slots), None)
    if missing is not None:
        raise MappingError(describe_missing_column(missing, compiler.names))
    return compiler.program


class _Compiler:
    def __init__(self, columns: Sequence[str]) -> None:
        self.program, self.names = SchemaProgram(), []  # type: ignore[var-annotated]
        self._columns = {tuple(name.split(".")): name for name in columns}
        self._known: dict[str, Any] = {}
        self._open: set[str] = set()
        self._types = 0

    def add(self, schema: Any, path: tuple[str, ...] | None, space: str, depth: int) -> None:  # noqa: ANN401, C901 - JSON; one branch a kind of type
        """Add the steps of a schema; ``path`` is None inside of what is no single value."""
        steps = self.program.steps
        self._types += 1
        if depth > MAX_DEPTH or len(steps) > MAX_STEPS or self._types > MAX_TYPES:
            raise UnreadableFileError("its schema is too deep, or too large")
        if isinstance(schema, list):
            self._add_union(schema, path, space, depth)
            return
        told = schema if isinstance(schema, dict) else {"type": schema}
        kind = told["type"]
        if isinstance(kind, dict | list):
            self.add(kind, path, space, depth)
            return
        if kind in {"record", "error"}:
            self._add_record(told, path, space, depth)
        elif kind in {"array", "map"}:
            at = len(steps)
            steps.append([BLOCKS, 0, 0, NO_SLOT])
            if kind == "map":
                steps.append([BYTES, 0, 0, NO_SLOT])
            self.add(told["items" if kind == "array" else "values"], None, space, depth + 1)
            steps.append([REPEAT, at, 0, NO_SLOT])
            steps[at][1] = len(steps)
        elif kind == "fixed":
            self._name(told, space)
            steps.append([FIXED, int(told["size"]), 0, self._slot(path, told)])
        elif kind in _PLAIN:
            if kind == "enum":
                self._name(told, space)
            steps.append([_PLAIN[kind], 0, 0, self._slot(path, told)])
        else:
            full = kind if "." in kind or not space else f"{space}.{kind}"
            found = self._known.get(full, self._known.get(kind))
            if found is None or full in self._open:
                raise UnreadableFileError(f"its schema holds itself, or names {kind!r:.60}, which it does not have")
            self.add(found[0], path, found[1], depth + 1)

    def _name(self, told: dict[str, Any], space: str) -> tuple[str, str]:
        name, own = str(told["name"]), told.get("namespace", space)
        full = name if "." in name or not own else f"{own}.{name}"
        space = full.rpartition(".")[0]
        self._known[full] = told, space
        return full, space

    def _add_record(self, told: dict[str, Any], path: tuple[str, ...] | None, space: str, depth: int) -> None:
        full, space = self._name(told, space)
        self._open.add(full)
        for one in told["fields"]:
            inner = None if path is None else (*path, one["name"])
            if inner is not None:
                self.names.append(".".join(inner))
            self.add(one["type"], inner, space, depth + 1)
        self._open.discard(full)

    def _add_union(self, branches: list[Any], path: tuple[str, ...] | None, space: str, depth: int) -> None:
        program = self.program
        first = len(program.targets)
        program.steps.append([UNION, first, len(branches), NO_SLOT])
        program.targets += [0] * len(branches)
        ends = []
        for number, branch in enumerate(branches):
            program.targets[first + number] = len(program.steps)
            self.add(branch, path, space, depth + 1)
            ends.append(len(program.steps))
            program.steps.append([JUMP, 0, 0, NO_SLOT])
        for end in ends:
            program.steps[end][1] = len(program.steps)

    def _slot(self, path: tuple[str, ...] | None, told: dict[str, Any]) -> int:
        name = self._columns.get(path) if path is not None else None
        if name is None:
            return NO_SLOT
        slots = self.program.slots
        slot = slots.setdefault(name, Slot())
        if told["type"] != "null":
            slot.types.append(told)
        return list(slots).index(name)


def parse_schema(text: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the schema of a container file's header.

    Raises:
        UnreadableFileError: it is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableFileError("its header holds no schema") from None


def _compile(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Return a loop compiled, and kept on disk where that is possible."""
    try:
        made = numba.njit(function, cache=True, nogil=True)
    except RuntimeError:
        made = numba.njit(function, nogil=True)
    return cast("Callable[_Given, _Returned]", made)


@_compile
def _read_number(data: NDArray[np.uint8], at: np.int64) -> tuple[np.int64, np.int64]:
    """Return a number of variable length, in zigzag, and where it ends; ``CUT`` where it does not."""
    end, number, shift, byte = len(data), np.uint64(0), np.uint64(0), np.uint64(0x80)
    while byte & np.uint64(0x80):
        if at >= end or shift > np.uint64(63):
            return np.int64(0), np.int64(CUT)
        byte = np.uint64(data[at])
        number |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
        at += 1
    return np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1)), np.int64(at)


def _walk(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0915, PLR0917 - one loop, which is compiled as it is
    data: NDArray[np.uint8],
    steps: NDArray[np.int64],
    targets: NDArray[np.int64],
    kinds: NDArray[np.int8],
    values: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Read records of ``data`` into (slots, records) arrays; return how many are whole, all bytes read, or -1."""
    end, at, count, last = len(data), np.int64(0), kinds.shape[1], len(steps)
    stack_left = np.zeros(MAX_DEPTH + 2, np.int64)
    for record in range(count):
        step, depth = 0, 0
        while step < last:
            operation, first, second, slot = steps[step, 0], steps[step, 1], steps[step, 2], steps[step, 3]
            if operation == JUMP:
                step = first
                continue
            if operation == NULL:
                step += 1
                continue
            if operation == REPEAT:
                stack_left[depth - 1] -= 1
                if stack_left[depth - 1] > 0:
                    step = first + 1
                    continue
                depth -= 1
                step = first
                continue
            if operation == FIXED or operation == FLOAT or operation == DOUBLE or operation == BOOLEAN:  # noqa: PLR1714, SIM109 - numba
                size = first
                if operation == FLOAT:
                    size = 4
                elif operation == DOUBLE:
                    size = 8
                elif operation == BOOLEAN:
                    size = 1
                if size > end - at or size < 0:
                    return record
                if slot >= 0:
                    kinds[slot, record], values[slot, record], sizes[slot, record] = operation, at, size
                at += size
                step += 1
                continue
            # All others begin with a number.
            value, at = _read_number(data, at)
            if at == CUT:
                return record
            if operation == LONG:
                if slot >= 0:
                    kinds[slot, record], values[slot, record] = LONG, value
                step += 1
            elif operation == BYTES:
                if value < 0 or value > end - at:
                    return record
                if slot >= 0:
                    kinds[slot, record], values[slot, record], sizes[slot, record] = BYTES, at, value
                at += value
                step += 1
            elif operation == UNION:
                if value < 0 or value >= second:
                    return record
                step = targets[first + value]
            elif value == 0:
                step = first
            elif value < 0:
                # The size of the block follows, which is skipped whole.
                size, at = _read_number(data, at)
                if at == CUT or size < 0 or size > end - at:
                    return record
                at += size
            else:
                # Values that take no bytes would be walked for ever.
                if value > end - at + MAX_EMPTY:
                    return record
                stack_left[depth] = value
                depth += 1
                step += 1
    return count if at == end else -1


def _gather(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], into: NDArray[np.uint8]
) -> None:
    """Copy pieces of ``data`` behind one another."""
    at = 0
    for place in range(len(starts)):
        start = starts[place]
        for byte in range(sizes[place]):
            into[at] = data[start + byte]
            at += 1


walk_records: Final = _compile(_walk)
gather_bytes: Final = _compile(_gather)
