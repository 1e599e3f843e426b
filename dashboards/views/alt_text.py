"""Alternative texts of charts, for screen readers: content, period and extremes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from hopwatch.dashboards.views.series import ChartPoint, HeatCell, OutlierMarker, StackPiece
from hopwatch.display import texts


@dataclass(frozen=True, slots=True)
class AltTextWriter:
    """Tells of charts whose steps are called ``step``, moments in a zone."""

    zone: tzinfo
    step: str

    def describe_arrivals(self, points: Sequence[ChartPoint], name: str) -> str:
        """Return what should have arrived and what did, in all, and where most is missing."""
        if not points:
            return f"Expected and arrived messages, {name}. {self._format_period([])}"
        expected, arrived = (
            {point.start_us: point.value for point in points if point.line == line} for line in ("expected", "arrived")
        )
        missing = {start_us: value - arrived.get(start_us, 0) for start_us, value in expected.items()}
        worst = max(missing, key=lambda start_us: missing[start_us], default=None)
        said = f"{sum(expected.values()):,.0f} expected, {sum(arrived.values()):,.0f} arrived"
        if worst is not None and missing[worst] > 0:
            said += f"; most are missing at {texts.format_moment(worst, self.zone)}: {missing[worst]:,.0f}"
        return f"Expected and arrived messages, {name}. {self._format_period(list(expected))} {said}."

    def describe_lags(self, points: Sequence[ChartPoint], found: Sequence[OutlierMarker], side: str, node: str) -> str:
        """Return between which values each percentile of a lag lies, and when it is highest."""
        of_side = [point for point in points if point.line == side]
        parts = []
        for part in dict.fromkeys(point.part for point in of_side):
            of_part = [point for point in of_side if point.part == part]
            low, high = (pick(of_part, key=lambda point: point.value) for pick in (min, max))
            parts.append(
                f"{part} {low.text} to {high.text}, highest at {texts.format_moment(high.start_us, self.zone)}"
            )
        odd = sum(one.line == side for one in found)
        marked = f" {odd:,} marked as odd or outliers." if odd else ""
        return (
            f"{side} of {node}. {self._format_period([point.start_us for point in of_side])}"
            f" {'; '.join(parts)}.{marked}"
        )

    def describe_durations(self, pieces: Sequence[StackPiece]) -> str:
        """Return between which values the process duration of each node lies."""
        parts = []
        for node in dict.fromkeys(piece.line for piece in pieces):
            of_node = [piece for piece in pieces if piece.line == node]
            low, high = (pick(of_node, key=lambda piece: piece.high - piece.low) for pick in (min, max))
            parts.append(f"{node} {low.text} to {high.text}")
        return f"Process duration p95. {self._format_period([piece.start_us for piece in pieces])} {'; '.join(parts)}."

    def describe_heat(self, cells: Sequence[HeatCell], unit: str) -> str:
        """Return the highest value of each row, and how many of its steps are not known or not final."""
        parts = []
        for row in dict.fromkeys(cell.row for cell in cells):
            of_row = [cell for cell in cells if cell.row == row]
            known = [cell for cell in of_row if cell.value is not None]
            worst = max(known, key=lambda cell: cell.value or 0, default=None)
            high = f"highest {worst.text} at {texts.format_moment(worst.start_us, self.zone)}" if worst else "no figure"
            blind = sum(cell.word in {"UNKNOWN", "SILENT"} for cell in of_row)
            parts.append(f"{row}: {high}{f', {blind:,} not known' if blind else ''}")
        return (
            f"{unit} of each node over time. "
            f"{self._format_period([cell.start_us for cell in cells])} {'; '.join(parts)}."
        )

    def _format_period(self, starts_us: Sequence[int]) -> str:
        if not starts_us:
            return "There is nothing to show."
        first, last = texts.format_moment(min(starts_us), self.zone), texts.format_moment(max(starts_us), self.zone)
        return f"By the {self.step} from {first} to {last}."
