"""Draw an explanation for the documentation: an SVG of the terminal's output, which `make docs` writes."""

from __future__ import annotations

import html
from typing import Final

from sparkwire.catalogue import SAMPLES
from sparkwire.catalogue.explanation import colour_of, explain, rows_of_hex, shortened
from sparkwire.core.explain import Explained

_HEX: Final = {"36": "#39c5cf", "33": "#d29922", "32": "#3fb950", "35": "#bc8cff", "34": "#58a6ff", "31": "#ff7b72"}
_LINE, _CHARACTER, _MARGIN = 17, 7.25, 18  # [px]
_COLUMNS: Final = {"position": 0, "hex": 7, "field": 33, "value": 58, "note": 88}  # [characters]
_WIDTH: Final = 168  # [characters]


def picture() -> str:
    """The explanation of an event with a flipped bit."""
    sample = bytearray(SAMPLES["event"])
    sample[18] ^= 0x20
    (part,) = explain(bytes(sample)).parts
    return svg(part)


def svg(part: Explained) -> str:
    """A dump as a picture."""
    texts = [_text(0, 0, f"{part.format} ({part.confidence[1]})", "#ffffff", bold=True)]
    row = 2
    for number, line in enumerate(part.lines):
        colour = _HEX[colour_of(number, line)]
        texts.append(_text(row, _COLUMNS["position"], f"{line.position:4}", "#8b949e"))
        texts.append(_text(row, _COLUMNS["field"], line.field, "#e6edf3"))
        texts.append(_text(row, _COLUMNS["value"], shortened(line.value, 28) or "", "#e6edf3", bold=True))
        texts.append(_text(row, _COLUMNS["note"], shortened(line.note, 78) or "", colour if line.code else "#8b949e"))
        for digits in rows_of_hex(line):
            texts.append(_text(row, _COLUMNS["hex"], digits, colour))
            row += 1
    width, height = _WIDTH * _CHARACTER + 2 * _MARGIN, row * _LINE + 2 * _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12">'
    )
    ground = f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>'
    return "\n".join([head, ground, *texts, "</svg>", ""])


def _text(row: int, column: int, text: str, colour: str, *, bold: bool = False) -> str:
    x, y = _MARGIN + column * _CHARACTER, _MARGIN + (row + 0.75) * _LINE
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{weight} xml:space="preserve">{html.escape(text)}</text>'
