"""``sparkwire.explain(value)``: bytes, one by one, for a person.

    >>> sparkwire.explain(row.value)

A terminal shows a dump in columns and colours, a notebook shows a table. The format is detected, and the confidence reported:
right checksums leave no doubt, a header alone is a guess.
"""

from __future__ import annotations

import html
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.avro.payloads import ids_as_text
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.printable import printable
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.changes import explain as changes
from sparkwire.core.explain import LONGEST_TEXT, Explained, Line, Scope, Walker
from sparkwire.databus import explain as databus
from sparkwire.kafka import explain as kafka

_ACROSS: Final = 8
"""bytes in hex in one line of a dump"""
_LONGEST: Final = 6
"""lines of a dump that one field takes"""
_BOLD, _DIM, _RED, _COLOURS = "1", "2", "31", ("36", "33", "32", "35", "34")


class Explanation(NamedTuple):
    """The meaning of bytes: printed it is a dump, in a notebook a table."""

    parts: list[Explained]

    def __repr__(self) -> str:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return "\n\n".join("\n".join(_dump(part, coloured)) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join("\n".join(_table(part)) for part in self.parts)


def explain(value: Any) -> Explanation:
    """Explain every byte of a value, its meaning and its errors: as a dump in a terminal, as a table in a notebook.

    Parameters
    ----------
    value
        bytes (Databus events, a Kafka message or the bytes of its log), or a Row of a DataFrame, whose BINARY columns
        it explains. The function detects the format and reports its confidence.

    Raises
    ------
    TypeError
        if it is neither, or a Row without any BINARY value.

    Examples
    --------
    >>> sparkwire.explain(spark.table("events").where("error IS NOT NULL").first())
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return Explanation([_likeliest("", bytes(value))])
    columns: Mapping[str, Any] = value.asDict() if hasattr(value, "asDict") else {}
    parts = [_likeliest(name, bytes(cell)) for name, cell in columns.items() if isinstance(cell, bytes | bytearray)]
    if not parts:
        raise TypeError(
            f"explain takes bytes, or a Row with a BINARY column that is not NULL, got {type(value).__name__}"
        )
    return Explanation(parts)


def _likeliest(column: str, data: bytes) -> Explained:
    """The explanation in the format with the best evidence; of several with the same rank, the first one."""
    return max(_explanations(data), key=lambda explained: explained.confidence[0])._replace(column=column)


def _explanations(data: bytes) -> Iterator[Explained]:
    yield Explained("no known format", [Line(0, data, "bytes", None, [])] if data else [])
    message = changes.explain(data)
    if message is not None:
        yield message
    yield from (databus.explain_stream(data), *kafka.explanations(data))
    rows = pa.array([data], pa.binary())
    for format in WIRE_FORMATS.values():
        if format.header is not None and format.fits(rows):
            [id] = ids_as_text(format.payloads(rows).ids).to_pylist()
            walker = _HeaderWalker(data)
            walker.walk(format.header)
            yield Explained(f"a message with {format.header.title}, schema {id}", walker.lines)


class _HeaderWalker(Walker):
    """Explains a wire format header. The payload is one line, because only a schema can explain it."""

    def opened(self, scope: Scope, content: bytes) -> tuple[bytes, str]:
        try:
            return zlib.decompressobj().decompress(content, LONGEST_TEXT), "compressed with zlib"
        except zlib.error as error:
            return b"", f"{ERRORS[BAD_FIELD]}: not what zlib compresses: {error}"


# -- for a terminal and a notebook


def _heading(part: Explained) -> str:
    return printable(f"{part.column + ': ' if part.column else ''}{part.format} ({part.confidence[1]})")


def _texts(line: Line) -> tuple[str, str, str]:
    """Field, value and note."""
    return printable(line.field), shortened(line.value), printable(line.note or "")


def _dump(part: Explained, coloured: bool) -> Iterator[str]:
    def paint(text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if coloured and text else text

    yield paint(_heading(part), _BOLD)
    width = max((len(printable(line.field)) for line in part.lines), default=0)
    for number, line in enumerate(part.lines):
        field, value, note = _texts(line)
        says = f"{field:{width}}  " + "  ".join(filter(None, (value, paint(note, _DIM))))
        for row, digits in enumerate(rows_of_hex(line)):
            position = paint(f"{line.position + row * _ACROSS:8}  ", _DIM)
            bytes_in_hex = paint(f"{digits:{3 * _ACROSS}}", colour_of(number, line))
            yield f"{position}{bytes_in_hex} {says if row == 0 else ''}".rstrip()


def colour_of(number: int, line: Line) -> str:
    """The terminal's code for the colour of a line."""
    return _RED if line.code else _COLOURS[number % len(_COLOURS)]


def rows_of_hex(line: Line) -> list[str]:
    """The bytes of a line in hex, cut where they are many."""
    shown = line.data[: _ACROSS * (_LONGEST + 1)]
    rows = [shown[at : at + _ACROSS].hex(" ") for at in range(0, len(shown), _ACROSS)] or [""]
    return rows if len(rows) <= _LONGEST else [*rows[: _LONGEST - 1], f"… {line.size - (_LONGEST - 1) * _ACROSS} more"]


def shortened(value: str | None, most: int = 60) -> str:
    """A value in one line."""
    text = printable(value or "")
    return text if len(text) <= most else f"{text[:most]}…"


def _table(part: Explained) -> Iterator[str]:
    yield f"<p><b>{html.escape(_heading(part))}</b></p><table>"
    yield "".join(["<tr>", *(f"<th>{name}</th>" for name in ("position", "hex", "field", "value", "note")), "</tr>"])
    for line in part.lines:
        cells = (str(line.position), "\n".join(rows_of_hex(line)), *_texts(line))
        style = "text-align:left;vertical-align:top;white-space:pre-wrap" + ";color:#900" * bool(line.code)
        yield "".join(["<tr>", *(f"<td style='{style}'>{html.escape(text)}</td>" for text in cells), "</tr>"])
    yield "</table>"
