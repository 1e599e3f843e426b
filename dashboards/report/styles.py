"""CSS of a report: light or dark as the reader's system is, light on paper."""

from __future__ import annotations

from typing import Final

from hopwatch.dashboards.charts.time_chart import STYLES
from hopwatch.display.colours import DARK, LIGHT, build_css_variables

_MARKS: Final = ("lossy", "clean", "unknown", "silent", "idle", "pending")


def build_styles() -> str:
    """Return them as CSS."""
    kinds = "".join(f".hw-is-{name}{{color:var(--hw-{name});}}" for name in _MARKS)
    dark = f"@media screen and (prefers-color-scheme: dark){{:root{{{build_css_variables(DARK)}}}}}"
    return f":root{{color-scheme:light dark;{build_css_variables(LIGHT)}}}{dark}{kinds}{_STYLES}{STYLES}"


_STYLES: Final = """
* {box-sizing: border-box;}
body {margin: 0 auto; max-width: 1400px; padding: 1.6rem 1.4rem 3rem; background: var(--hw-ground);
  color: var(--hw-text); font: 15px/1.45 Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif;}
h1 {font-size: 1.5rem; margin: 0 0 .2rem; letter-spacing: -.01em;}
h2 {font-size: 1.25rem; margin: 2.4rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--hw-line);
  overflow-wrap: anywhere;}
h3 {font-size: 1rem; margin: 1.7rem 0 .35rem;}
a {color: var(--hw-link);}
p {margin: .2rem 0;}
code {font: .85em/1.5 'JetBrains Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace; overflow-wrap: anywhere;}
.hw-grave {color: var(--hw-lossy); font-weight: 600;}
.hw-note {color: var(--hw-muted); font-size: .85rem;}
.hw-scroll {overflow-x: auto;}
.hw-table {border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; line-height: 1.3;
  font-size: .86rem;}
.hw-table th, .hw-table td {border-bottom: 1px solid var(--hw-line); padding: .32rem .6rem; text-align: left;
  font-weight: 400; vertical-align: top; overflow-wrap: anywhere;}
.hw-table thead th {color: var(--hw-muted); font-weight: 500; vertical-align: bottom; overflow-wrap: normal;
  white-space: normal;}
.hw-table .hw-number {text-align: right; white-space: nowrap;}
.hw-table .hw-narrow {white-space: nowrap;}
.hw-table .hw-sentence {min-width: 20rem;}
.hw-table .hw-name {font-weight: 600;}
.hw-bad {color: var(--hw-lossy); font-weight: 600;}
.hw-hidden {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);}
.hw-chip {display: inline-block; border-radius: 999px;
  border: 1px solid color-mix(in srgb, currentColor 40%, transparent);
  background: color-mix(in srgb, currentColor 8%, transparent); padding: .05rem .55rem;
  font-size: .8rem; font-weight: 600; white-space: nowrap; letter-spacing: .02em;}
.hw-figures {margin: .7rem 0; display: flex; flex-wrap: wrap; gap: .5rem 2.2rem;}
.hw-figures .hw-what {color: var(--hw-muted); font-size: .8rem; display: block;}
.hw-figures .hw-value {font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums; display: block;}
figure {margin: 1.3rem 0 0;}
figcaption {font-weight: 600; font-size: .95rem;}
.hw-picture {display: block; width: 100%; height: auto; margin: .2rem 0 .4rem;}
details {border: 1px solid var(--hw-line); border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem;}
summary {cursor: pointer;}
@media print {
  body {max-width: none; padding: 0; font-size: 11px;}
  h2 {break-before: page;} h2.hw-first {break-before: auto;}
  h3, summary {break-after: avoid;} figure, svg, tr {break-inside: avoid;}
  details::details-content {content-visibility: visible; block-size: auto;}
  .hw-scroll {overflow: visible;} * {print-color-adjust: exact;}
}
"""
