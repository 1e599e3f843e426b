"""Charts in words, for whoever sees none: what is in them, over which time, and what stands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from hopwatch.dashboards.views import texts
from hopwatch.dashboards.views.series import Cell, Outlier, Piece, Point


@dataclass(frozen=True, slots=True)
class Told:
    """Tells of charts whose steps are called ``step``, moments in a zone."""

    zone: tzinfo
    step: str

    def arrivals(self, points: Sequence[Point], name: str) -> str:
        """Return what should have arrived and what did, in all, and where most is missing."""
        if not points:
            return f"Expected and arrived messages, {name}. {self._over([])}"
        expected, arrived = (
            {point.start_us: point.value for point in points if point.line == line} for line in ("expected", "arrived")
        )
        missing = {start_us: value - arrived.get(start_us, 0) for start_us, value in expected.items()}
        worst = max(missing, key=lambda start_us: missing[start_us], default=None)
        said = f"{sum(expected.values()):,.0f} expected, {sum(arrived.values()):,.0f} arrived"
        if worst is not None and missing[worst] > 0:
            said += f"; most are missing at {texts.moment(worst, self.zone)}: {missing[worst]:,.0f}"
        return f"Expected and arrived messages, {name}. {self._over(list(expected))} {said}."

    def lags(self, points: Sequence[Point], found: Sequence[Outlier], side: str, node: str) -> str:
        """Return between which values each percentile of a lag lies, and when it is highest."""
        of_side = [point for point in points if point.line == side]
        parts = []
        for part in dict.fromkeys(point.part for point in of_side):
            of_part = [point for point in of_side if point.part == part]
            low, high = (pick(of_part, key=lambda point: point.value) for pick in (min, max))
            parts.append(f"{part} {low.said} to {high.said}, highest at {texts.moment(high.start_us, self.zone)}")
        odd = sum(one.line == side for one in found)
        marked = f" {odd:,} marked as odd or outliers." if odd else ""
        return f"{side} of {node}. {self._over([point.start_us for point in of_side])} {'; '.join(parts)}.{marked}"

    def durations(self, pieces: Sequence[Piece]) -> str:
        """Return between which values the process duration of each node lies."""
        parts = []
        for node in dict.fromkeys(piece.line for piece in pieces):
            of_node = [piece for piece in pieces if piece.line == node]
            low, high = (pick(of_node, key=lambda piece: piece.high - piece.low) for pick in (min, max))
            parts.append(f"{node} {low.said} to {high.said}")
        return f"Process duration p95. {self._over([piece.start_us for piece in pieces])} {'; '.join(parts)}."

    def heat(self, cells: Sequence[Cell], unit: str) -> str:
        """Return the highest value of each row, and how many of its steps are not known or not final."""
        parts = []
        for row in dict.fromkeys(cell.row for cell in cells):
            of_row = [cell for cell in cells if cell.row == row]
            known = [cell for cell in of_row if cell.value is not None]
            worst = max(known, key=lambda cell: cell.value or 0, default=None)
            high = f"highest {worst.said} at {texts.moment(worst.start_us, self.zone)}" if worst else "no figure"
            blind = sum(cell.word in {"UNKNOWN", "SILENT"} for cell in of_row)
            parts.append(f"{row}: {high}{f', {blind:,} not known' if blind else ''}")
        return f"{unit} of each node over time. {self._over([cell.start_us for cell in cells])} {'; '.join(parts)}."

    def _over(self, starts_us: Sequence[int]) -> str:
        if not starts_us:
            return "There is nothing to show."
        first, last = texts.moment(min(starts_us), self.zone), texts.moment(max(starts_us), self.zone)
        return f"By the {self.step} from {first} to {last}."
