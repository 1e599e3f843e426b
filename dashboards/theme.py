"""Theme of the pages: Streamlit's options for light and dark, and the CSS of their markup."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.dashboards.views.pathway import MAX_COLUMNS, MAX_SCROLLED_COLUMNS
from hopwatch.display.colours import DARK, LIGHT, Palette, build_css_variables

COLUMN_PX: Final = 115
CLOSE_COLUMN_PX: Final = 74
"""Minimum widths of a pathway's column: with figures, and with names alone."""

OPTIONS: Final[dict[str, Any]] = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showSidebarNavigation": False,
    "client.toolbarMode": "minimal",
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
    "secrets.files": [],
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.sslCertFile": "",
    "server.sslKeyFile": "",
    "theme.baseRadius": "6px",
    "theme.baseFontSize": 15,
}
"""Options of Streamlit; they override its own configuration file."""


def build_options() -> dict[str, Any]:
    """Return all options of Streamlit, as its flags have them."""
    return OPTIONS | _build_theme_options("theme.light", LIGHT) | _build_theme_options("theme.dark", DARK)


def build_styles(palette: Palette) -> str:
    """Return the styles of the markup in a theme."""
    return f"<style>:root{{{build_css_variables(palette)}}}{_STYLES}{_build_graph_styles()}</style>"


def _build_graph_styles() -> str:
    """Return how wide a pathway of so many columns is at least, so that no name lies on another."""
    return "".join(
        f'.st-key-graph-{columns} [data-testid="stEChartsChart"] {{min-width: {px}px;}}\n'
        for columns in range(1, MAX_SCROLLED_COLUMNS + 1)
        if (px := columns * (CLOSE_COLUMN_PX if columns > MAX_COLUMNS else COLUMN_PX))
    )


def _build_theme_options(name: str, palette: Palette) -> dict[str, Any]:
    return {
        f"{name}.primaryColor": palette.link,
        f"{name}.backgroundColor": palette.ground,
        f"{name}.secondaryBackgroundColor": palette.raised,
        f"{name}.textColor": palette.text,
        f"{name}.linkColor": palette.link,
        f"{name}.borderColor": palette.line,
    }


_STYLES: Final = """
[data-testid="stMainBlockContainer"] {padding: 1.25rem 2rem 3rem; max-width: 1720px;}
[data-testid="stHeader"] {background: transparent; height: 2.5rem;}
[data-testid="stHtml"] a {color: var(--hw-link); text-decoration: none;}
[data-testid="stHtml"] a:hover {text-decoration: underline;}
.hw-brand {display: flex; align-items: baseline; gap: .75rem; flex-wrap: wrap; line-height: 2.4rem;}
.hw-brand b {font-size: 1.25rem; letter-spacing: -.01em; margin-right: .5rem;}
.hw-brand .hw-here {font-weight: 600; border-bottom: 2px solid var(--hw-link); line-height: 1.6rem;}
.hw-trail {display: flex; align-items: baseline; gap: .6rem; flex-wrap: wrap;}
.hw-trail .hw-sep {color: var(--hw-muted);}
.hw-trail .hw-here {font-weight: 600; overflow-wrap: anywhere;}
.hw-fresh {color: var(--hw-muted); font-size: .85rem; font-variant-numeric: tabular-nums;}
[class*="st-key-csv-"] {margin-top: -.5rem;}
[class*="st-key-graph-"] {overflow-x: auto;}
[class*="st-key-range-"] [role="radiogroup"] button {min-height: 2.5rem;}
.hw-hidden {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);}
.hw-scroll {overflow-x: auto;}
.hw-table {border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; line-height: 1.3;}
.hw-table th, .hw-table td {border: 0; border-bottom: 1px solid var(--hw-line); padding: .6rem .9rem;
  text-align: left; font-weight: 400; vertical-align: middle; overflow-wrap: anywhere;}
.hw-table thead th {color: var(--hw-muted); font-size: .8rem; font-weight: 500; padding: .4rem .9rem;
  vertical-align: bottom; overflow-wrap: normal;}
.hw-table tbody tr:hover {background: var(--hw-raised);}
.hw-table .hw-number {text-align: right; white-space: nowrap;}
.hw-table .hw-name {font-weight: 600; min-width: 9rem;}
.hw-table .hw-narrow {white-space: nowrap;}
.hw-first {display: block;}
.hw-second {display: block; color: var(--hw-muted); font-size: .8rem;}
.hw-table .hw-why {white-space: normal; max-width: 18rem;}
.hw-table.hw-overview th, .hw-table.hw-overview td {padding-left: .6rem; padding-right: .6rem;}
.hw-table.hw-overview thead th, .hw-overview .hw-number .hw-second {white-space: normal;}
.hw-overview .hw-why {min-width: 11rem;}
.hw-loud {color: var(--hw-lossy); font-weight: 600;}
[data-testid="stHtml"] .hw-loud a {color: inherit;}
.hw-old {color: var(--hw-unknown); font-weight: 600;}
.hw-chip {display: inline-block; border: 1px solid; border-radius: 999px; padding: .1rem .6rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap; letter-spacing: .02em;}
.hw-spark {display: block; height: 26px; max-width: none;}
.hw-wide {display: block; width: 100%; max-width: 960px; height: auto;}
.hw-title {font-size: .95rem; font-weight: 600; margin: 0;}
.hw-note {color: var(--hw-muted); font-size: .85rem; margin: 0; overflow-wrap: anywhere;}
.hw-figures {margin-top: .8rem; display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; align-items: flex-end;}
.hw-figures div {min-width: 4rem;}
.hw-figures .hw-what {color: var(--hw-muted); font-size: .8rem; display: block;}
.hw-figures .hw-value {font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; display: block;}
.hw-matrix td.hw-number, .hw-matrix th {padding: .38rem .9rem;}
.hw-table.hw-matrix thead th {min-width: 7.5rem; white-space: normal; overflow-wrap: anywhere;}
.hw-matrix .hw-bad, .hw-signs .hw-bad, .hw-note .hw-bad {color: var(--hw-lossy); font-weight: 600;}
.hw-matrix .hw-chosen {background: var(--hw-raised);}
.hw-exact {font-size: .8rem; color: inherit; background: var(--hw-blank); padding: .05rem .3rem; border-radius: 4px;
  overflow-wrap: anywhere;}
.hw-signs td, .hw-signs tbody th {vertical-align: top; padding: .55rem .7rem;}
.hw-signs thead th {padding: .4rem .7rem;}
.hw-signs td.hw-long {min-width: 14rem; overflow-wrap: anywhere;}
.hw-signs .hw-name {min-width: 6.5rem;}
.hw-signs .hw-name .hw-second {font-weight: 400;}
.hw-signs td.hw-who {min-width: 9.5rem;}
.hw-signs td.hw-why {min-width: 6.5rem;}
.hw-signs td.hw-where {min-width: 9rem;}
.hw-signs .hw-who .hw-second {white-space: nowrap;}
.hw-told {display: inline-block; max-width: 100%; overflow-wrap: anywhere;}
.hw-signs .hw-narrow .hw-second {white-space: normal; overflow-wrap: anywhere; min-width: 6.5rem;}
.hw-incident .hw-chip {margin-right: .3rem;}
.hw-signs .hw-exact {display: inline-block;}
.hw-pages {display: flex; gap: 1rem; align-items: baseline; font-variant-numeric: tabular-nums;}
.hw-incident {margin: 0 0 .35rem; line-height: 1.5; overflow-wrap: anywhere;}
.hw-sheet th, .hw-sheet td {padding: .2rem .9rem; font-size: .85rem;}
[data-testid="stExpander"] summary, [data-testid="stExpander"] summary * {color: var(--hw-muted); opacity: 1;}
[data-stale="true"] {opacity: 1 !important; transition: none !important;}
.hw-steps {margin: 0 0 .9rem; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; font-size: .9rem;
  align-items: baseline;}
.hw-steps .hw-off {color: var(--hw-muted);}
[data-testid="stHtml"] ul.hw-notes {margin: .3rem 0 0; padding-left: 1.1rem; font-size: .88rem; line-height: 1.5;
  overflow-wrap: anywhere;}
.hw-sum {font-size: 1.05rem; font-weight: 600; margin: .5rem 0 .6rem; font-variant-numeric: tabular-nums;}
.hw-bar {display: flex; gap: 2px; height: 26px; border-radius: 5px; overflow: hidden; background: var(--hw-blank);}
.hw-bar i {min-width: 4px; background: var(--hw-part);}
.hw-bar i.hw-of-unknown {flex: 0 0 48px !important;}
.hw-bar.hw-not-final {outline: 1px dashed var(--hw-muted); outline-offset: 2px; opacity: .65;}
[data-testid="stHtml"] ul.hw-notes li {margin: 0;}
[data-testid="stHtml"] .hw-holes ul.hw-notes {list-style: none; padding: 0; margin: 0;}
[data-testid="stHtml"] ul.hw-keys {list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.6rem;
  margin: .6rem 0 0; padding: 0; font-size: .9rem; font-variant-numeric: tabular-nums;}
[data-testid="stHtml"] ul.hw-keys li {margin: 0;}
.hw-keys i {display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: .45rem;
  vertical-align: -1px; background: var(--hw-part); outline: 1px solid var(--hw-part);}
i.hw-of-missing, i.hw-of-unknown {
  background: repeating-linear-gradient(135deg, var(--hw-part) 0 4px, transparent 4px 8px);}
i.hw-of-flight {background: repeating-linear-gradient(135deg, var(--hw-part) 0 3px, transparent 3px 5px);}
.hw-keys small {color: var(--hw-muted); margin-left: .25rem;}
[data-testid="stHtml"] dl.hw-apart {display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem;
  margin: .5rem 0 0; padding: 0;
  font-size: .88rem;}
[data-testid="stHtml"] dl.hw-apart dt {color: var(--hw-muted); font-weight: 400; max-width: 14rem;
  overflow-wrap: anywhere;}
[data-testid="stHtml"] dl.hw-apart dd {margin: 0; overflow-wrap: anywhere;}
.hw-revision {margin-top: .7rem;}
.hw-state {margin: .45rem 0 0;}
.hw-id {font-family: ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace; font-size: .88rem;}
.hw-ids td, .hw-ids th {padding: .3rem .9rem;}
.hw-journey {margin-top: .6rem;}
.hw-journey tbody th {position: relative; padding-left: 2rem; font-weight: 600;}
.hw-journey tbody th::before {content: ""; position: absolute; left: .85rem; top: 0; bottom: -1px; width: 2px;
  background: var(--hw-line);}
.hw-journey tbody tr:first-child th::before {top: 50%;}
.hw-journey tbody tr:last-child th::before {bottom: 50%;}
.hw-journey tbody th::after {content: ""; position: absolute; left: calc(.85rem - 4px); top: calc(50% - 5px);
  width: 10px; height: 10px; border-radius: 50%; background: var(--hw-link);}
.hw-journey tbody tr:has(.hw-loud) th::after {background: var(--hw-lossy); border-radius: 2px;}
.hw-map {position: relative; margin: .5rem 0 1rem;}
.hw-map-lines {position: absolute; width: 100% !important; height: 100% !important; max-width: none !important;}
[data-testid="stHtml"] a.hw-service {position: absolute; box-sizing: border-box; padding: .2rem .35rem;
  border: 1px solid; border-left-width: 4px; border-radius: 6px; background: var(--hw-ground); color: var(--hw-text);
  font-size: .78rem; line-height: 1.22; font-variant-numeric: tabular-nums; overflow: hidden;}
[data-testid="stHtml"] a.hw-service:hover {background: var(--hw-raised); text-decoration: none;}
[data-testid="stHtml"] a.hw-service.hw-chosen {outline: 3px solid var(--hw-link); outline-offset: 1px;}
[data-testid="stHtml"] a.hw-service.hw-dated {border-style: dashed;}
.hw-service span {font-size: .72rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;}
.hw-service .hw-first {font-size: .8rem; font-weight: 600;}
.hw-service i {font-style: normal;}
.hw-map-narrow {display: none;}
@media (max-width: 800px) {.hw-map-wide {display: none;} .hw-map-narrow {display: block;}}
.hw-empty {max-width: 46rem; margin: 2.5rem auto;}
.st-key-entrance {margin-top: 12vh;}
[data-testid="stLayoutWrapper"]:has(> .st-key-entrance) {align-self: center;}
"""
