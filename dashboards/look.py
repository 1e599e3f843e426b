"""How the pages look: Streamlit's options for both themes, and the styles of what is drawn as markup."""

from __future__ import annotations

from typing import Any, Final

from dashboards.views.colours import DARK, LIGHT, Palette

FONT: Final = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

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
    "theme.baseRadius": "6px",
    "theme.baseFontSize": 15,
}
"""What Streamlit is told, whatever a file of its own says."""


def options() -> dict[str, Any]:
    """Return all options of Streamlit, as its flags have them."""
    return OPTIONS | _theme("theme.light", LIGHT) | _theme("theme.dark", DARK)


def styles(palette: Palette) -> str:
    """Return the styles of the markup in a theme."""
    names = ("ground", "raised", "line", "text", "muted", "link", "lossy", "unknown", "blank")
    colours = "".join(f"--hw-{name}:{getattr(palette, name)};" for name in names)
    return f"<style>:root{{{colours}}}{_STYLES}</style>"


def _theme(name: str, palette: Palette) -> dict[str, Any]:
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
.hw-loud {color: var(--hw-lossy); font-weight: 600;}
.hw-old {color: var(--hw-unknown); font-weight: 600;}
.hw-chip {display: inline-block; border: 1px solid; border-radius: 999px; padding: .1rem .6rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap; letter-spacing: .02em;}
.hw-spark {display: block; height: 26px; max-width: none;}
.hw-title {font-size: .95rem; font-weight: 600; margin: 0;}
.hw-note {color: var(--hw-muted); font-size: .85rem; margin: 0;}
.hw-figures {margin-top: .8rem; display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; align-items: flex-end;}
.hw-figures div {min-width: 4rem;}
.hw-figures .hw-what {color: var(--hw-muted); font-size: .8rem; display: block;}
.hw-figures .hw-value {font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; display: block;}
.hw-matrix td.hw-number, .hw-matrix th {padding: .38rem .9rem;}
.hw-matrix .hw-bad {color: var(--hw-lossy); font-weight: 600;}
.hw-matrix .hw-chosen {background: var(--hw-raised);}
[data-stale="true"] {opacity: 1 !important; transition: none !important;}
.hw-empty {max-width: 46rem; margin: 2.5rem auto;}
.st-key-entrance {margin-top: 12vh;}
[data-testid="stLayoutWrapper"]:has(> .st-key-entrance) {align-self: center;}
"""
