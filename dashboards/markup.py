"""HTML of tables, chips and figures; text from outside is escaped by :func:`escape_html`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

from hopwatch.dashboards.views.conservation import ConservationPart
from hopwatch.dashboards.views.overview import SparklineBar
from hopwatch.display.colours import Mark, Palette

_SPECIAL: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]()<>#+-.!|~$:^=&"})
BAR_WIDTH_PX, SPARKLINE_HEIGHT_PX, MIN_BAR_PX = 3, 26, 2


def escape_html(words: str) -> str:
    """Return words as HTML shows them as they are."""
    return escape(words, quote=True)


def escape_markdown(words: str) -> str:
    """Return words as Streamlit's Markdown shows them as they are, on one line."""
    return " ".join(words.translate(_SPECIAL).split())


def link(words: str, query: Mapping[str, str], title: str = "") -> str:
    """Return a link to another view of this page."""
    hint = f' title="{escape_html(title)}"' if title else ""
    return f'<a href="?{escape_html(urlencode(query))}" target="_self"{hint}>{escape_html(words)}</a>'


def card(content: str, query: Mapping[str, str], said: str, kind: str, style: str) -> str:
    """Return markup that is a link as a whole, of a class and style; ``said`` is it in words."""
    words = escape_html(said)
    return (
        f'<a class="{kind}" style="{style}" href="?{escape_html(urlencode(query))}" target="_self" title="{words}" '
        f'aria-label="{words}">{content}</a>'
    )


def external_link(words: str, url: str) -> str:
    """Return a link to somewhere else, in a tab of its own; what is no address of the web is text."""
    if not url.startswith(("https://", "http://")):
        return escape_html(words)
    return f'<a href="{escape_html(url)}" target="_blank" rel="noopener noreferrer">{escape_html(words)}</a>'


def code(words: str) -> str:
    """Return words to copy, such as a path, as code."""
    return f'<code class="hw-exact">{escape_html(words)}</code>'


def stack_lines(*lines: str) -> str:
    """Return lines of markup, one below the other."""
    return "".join(f'<span class="hw-first">{line}</span>' for line in lines if line)


def chip(mark: Mark, palette: Palette, note: str = "") -> str:
    """Return a verdict: icon, word and colour."""
    colour = mark.colour(palette)
    style = f"color:{colour};border-color:{colour}66;background:{colour}14"
    hint = escape_html(note or mark.meaning)
    return (
        f'<span class="hw-chip" style="{style}" title="{hint}">'
        f'<span aria-hidden="true">{escape_html(mark.icon)}</span> {escape_html(mark.word)}</span>'
    )


def two_lines(first: str, second: str, *, is_loud: bool = False) -> str:
    """Return a figure and a smaller one below it."""
    loud = " hw-loud" if is_loud else ""
    return (
        f'<span class="hw-first{loud}">{escape_html(first)}</span><span class="hw-second">{escape_html(second)}</span>'
    )


def first_reason(reasons: Sequence[str]) -> str:
    """Return the first reason of a verdict below it, all of them for whoever points at it; nothing without any."""
    if not reasons:
        return ""
    more = f" and {len(reasons) - 1:,} more" if reasons[1:] else ""
    return (
        f'<span class="hw-second hw-why" title="{escape_html("; ".join(reasons))}'
        f'">{escape_html(reasons[0])}{more}</span>'
    )


def emphasis(words: str, *, is_bad: bool) -> str:
    """Return a figure, loud if it is one of loss."""
    return f'<span class="hw-bad">{escape_html(words)}</span>' if is_bad else escape_html(words)


def figure(name: str, told: str) -> str:
    """Return a figure under its name."""
    return (
        f'<div><span class="hw-what">{escape_html(name)}</span><span class="hw-value">{escape_html(told)}</span></div>'
    )


def linked_figure(name: str, told: str, query: Mapping[str, str], hint: str) -> str:
    """Return a figure under its name that leads to what it is made of."""
    return (
        f'<div><span class="hw-what">{escape_html(name)}</span><span class="hw-value">'
        f"{link(told, query, hint)}</span></div>"
    )


def note(words: str) -> str:
    """Return a line of small words."""
    return f'<p class="hw-note">{escape_html(words)}</p>'


def note_list(lines: Iterable[str]) -> str:
    """Return lines of small words as a list."""
    return f'<ul class="hw-notes">{"".join(f"<li>{escape_html(line)}</li>" for line in lines)}</ul>'


def bar(parts: Sequence[ConservationPart], palette: Palette, said: str, *, is_final: bool) -> str:
    """Return what adds up to a whole as a bar, and below it each part with its number; ``said`` is it in words."""
    colours = {
        "delivered": palette.clean,
        "filtered": palette.series[4],
        "rejected": palette.series[3],
        "surely": palette.lossy,
        "missing": palette.unknown,
        "flight": palette.pending,
        "unknown": palette.unknown,
    }
    drawn = "".join(
        f'<i class="hw-of-{part.kind}" style="flex:{part.share:.6f} 1 0;--hw-part:{colours[part.kind]}"></i>'
        for part in parts
        if part.share or part.kind == "unknown"
    )
    keys = "".join(
        f'<li><i class="hw-of-{part.kind}" style="--hw-part:{colours[part.kind]}"></i>'
        f"<b>{escape_html(part.number)}</b> {escape_html(part.name)} <small>{escape_html(part.percent)}</small></li>"
        for part in parts
    )
    kind = "hw-bar" if is_final else "hw-bar hw-not-final"
    return (
        f'<div class="{kind}" role="img" aria-label="{escape_html(said)}">{drawn}</div><ul class="hw-keys">{keys}</ul>'
    )


def stack(parts: Sequence[tuple[str, str, float]], palette: Palette, said: str) -> str:
    """Return parts of a whole as a bar: their names, shares in words, and shares; those of nothing are left out."""
    drawn = "".join(
        f'<i style="flex:{share:.6f} 1 0;--hw-part:{palette.series[place % len(palette.series)]}" '
        f'title="{escape_html(f"{name} {words}")}"></i>'
        for place, (name, words, share) in enumerate(parts)
        if share > 0
    )
    keys = "".join(
        f'<li><i style="--hw-part:{palette.series[place % len(palette.series)]}"></i>'
        f"<b>{escape_html(words)}</b> {escape_html(name)}</li>"
        for place, (name, words, share) in enumerate(parts)
        if share > 0
    )
    pictured = f'<div class="hw-bar" role="img" aria-label="{escape_html(said)}">{drawn}</div>'
    return f'{pictured}<ul class="hw-keys">{keys}</ul>'


def title(words: str, note: str = "") -> str:
    """Return the title of a panel, and what there is to say of it."""
    more = f'<p class="hw-note">{escape_html(note)}</p>' if note else ""
    return f'<p class="hw-title">{escape_html(words)}</p>{more}'


def sparkline(bars: Sequence[SparklineBar], said: str, palette: Palette) -> str:
    """Return an hour as a picture: a bar a minute, high by its messages, coloured as its window is judged."""
    drawn = "".join(_bar(place, bar, palette) for place, bar in enumerate(bars))
    width = len(bars) * (BAR_WIDTH_PX + 1)
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{SPARKLINE_HEIGHT_PX}" '
        f'viewBox="0 0 {width} '
        f"{SPARKLINE_HEIGHT_PX}"
        f'">{drawn}</svg>'
    )
    return image(picture, said, "hw-spark")


def image(svg: str, said: str, kind: str) -> str:
    """Return a picture as an image of a class; ``said`` is it in words."""
    data = b64encode(svg.encode()).decode()
    words = escape_html(said)
    return f'<img class="{kind}" src="data:image/svg+xml;base64,{data}" alt="{words}" title="{words}">'


def table(head: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], name: str, caption: str = "") -> str:
    """Return a table of cells that are markup already; a head is its words and the class of its column."""
    heads = "".join(f'<th scope="col" class="{kind}">{escape_html(words)}</th>' for words, kind in head)
    body = "".join(f"<tr>{_cells(row, head)}</tr>" for row in rows)
    said = f'<caption class="hw-hidden">{escape_html(caption)}</caption>' if caption else ""
    return (
        f'<div class="hw-scroll"><table class="hw-table {name}">{said}<thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[str], head: Sequence[tuple[str, str]]) -> str:
    first, *others = zip(row, head, strict=True)
    opening = f'<th scope="row" class="{first[1][1]}">{first[0]}</th>'
    return opening + "".join(f'<td class="{kind}">{cell}</td>' for cell, (_, kind) in others)


def _bar(place: int, bar: SparklineBar, palette: Palette) -> str:
    left = place * (BAR_WIDTH_PX + 1)
    if bar.mark is None:
        return (
            f'<rect x="{left}" y="{SPARKLINE_HEIGHT_PX - 1}" width="{BAR_WIDTH_PX}" height="1" fill="{palette.line}"/>'
        )
    high = max(MIN_BAR_PX, round(bar.height * SPARKLINE_HEIGHT_PX))
    look = f'fill="{bar.mark.colour(palette)}"' + ("" if bar.is_final else ' fill-opacity="0.4"')
    return f'<rect x="{left}" y="{SPARKLINE_HEIGHT_PX - high}" width="{BAR_WIDTH_PX}" height="{high}" {look}/>'


def badge(mark: Mark) -> str:
    """Return a verdict whose colours are the document's: icon, word and class."""
    return (
        f'<span class="hw-chip hw-is-{escape_html(mark.name)}" title="{escape_html(mark.meaning)}">'
        f'<span aria-hidden="true">{escape_html(mark.icon)}</span> {escape_html(mark.word)}</span>'
    )


def elements(name: str, words: Iterable[str], kind: str = "") -> str:
    """Return an element of a kind for each of some words."""
    return "".join(f'<{name} class="{kind}">{escape_html(one)}</{name}>' for one in words)
