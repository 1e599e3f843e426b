"""Queries of completeness: the contracts of the configuration, and the curve of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from sqlalchemy import Connection

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.lookup.completeness import answer_contract, find_last_end_us
from hopwatch.monitor.lookup.completeness_curve import CurveAnswer, read_curve

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MAX_CONTRACTS: Final = 50
MAX_CURVE_US: Final = 7 * 86_400_000_000
"""Longest range of a curve: it is made of each minute of each node."""
SPANS: Final = 2
"""Spans of a contract that are shown: the last one that is over, and the one before."""


class ContractAnswers(NamedTuple):
    """Answers to a contract for its last spans, the newest first, as the API gives them; or why there are none."""

    name: str
    answers: tuple[dict[str, Any], ...]
    error: str = ""


class CompletenessAnswers(NamedTuple):
    """Answers to contracts, and how many more there are."""

    contracts: tuple[ContractAnswers, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class CompletenessQuery:
    """Query of the contracts of a stream, or of all without one, for the spans before ``now_us``, a whole minute."""

    stream: str
    now_us: int
    settings: Settings = field(compare=False)

    def run(self, connection: Connection) -> CompletenessAnswers:
        """Return it."""
        names = [name for name, one in sorted(self.settings.completeness.items()) if self.stream in {"", one.stream}]
        contracts = tuple(self._answer(connection, name) for name in names[:MAX_CONTRACTS])
        return CompletenessAnswers(contracts, len(names) - len(contracts))

    def _answer(self, connection: Connection, name: str) -> ContractAnswers:
        over_us = self.settings.completeness[name].over_us
        last_us = find_last_end_us(over_us, self.now_us)
        try:
            return ContractAnswers(name, tuple(self._answer_spans(connection, name, last_us, over_us)))
        except ConfigurationError as error:
            return ContractAnswers(name, (), str(error))

    def _answer_spans(self, connection: Connection, name: str, last_us: int, over_us: int) -> Iterator[dict[str, Any]]:
        for number in range(SPANS):
            yield answer_contract(connection, self.settings, name, last_us - number * over_us)


@dataclass(frozen=True, slots=True)
class CurveQuery:
    """Query of the curve of a stream's windows that start in ``[from_us, to_us)``, of the last 7 days of it at most."""

    fresh_for_us: ClassVar = 60_000_000
    """A curve is made of each minute of each node, and changes little in a minute."""

    stream: str
    from_us: int
    to_us: int
    terms: WindowPolicy = field(compare=False)

    def run(self, connection: Connection) -> CurveAnswer:
        """Return it."""
        from_us = max(self.from_us, self.to_us - MAX_CURVE_US)
        return read_curve(connection, self.stream, self.terms, from_us, self.to_us)
