"""``sparkwire.explain(value)``: bytes, one by one, for a person.

    >>> sparkwire.explain(row.value)

A terminal shows a dump in columns and colours, a notebook shows a table. The format is detected, and the confidence reported:
right checksums leave no doubt, a header alone is a guess.
"""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.avro import explain as avro
from sparkwire.avro.payloads import ids_as_text
from sparkwire.base.error_codes import ERRORS
from sparkwire.catalogue import FUNCTIONS
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.core.dump import Dump, Line
from sparkwire.databus import explain as databus
from sparkwire.kafka import explain as kafka
from sparkwire.kafka.layout import ENTRY, MAGIC, OVERHEAD

_ACROSS: Final = 8
"""bytes in hex in one line of a dump"""
_LONGEST: Final = 6
"""lines of a dump that one field takes"""
_BOLD, _DIM, _RED, _COLOURS = "1", "2", "31", ("36", "33", "32", "35", "34")


class ExplainedBytes(NamedTuple):
    """Some bytes in one format."""

    title: str
    """the name of their column, empty for bytes that are not of a row"""
    format: str
    sure: str
    """the confidence and its reason"""
    lines: list[Line]


class Explanation(NamedTuple):
    """The meaning of bytes: printed it is a dump, in a notebook a table."""

    parts: list[ExplainedBytes]

    def __repr__(self) -> str:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return "\n\n".join("\n".join(_dump(part, coloured)) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join("\n".join(_table(part)) for part in self.parts)


def explain(value: Any) -> Explanation:
    """The meaning and the errors of every byte of a value: see `sparkwire.explain`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return Explanation([_part("", bytes(value))])
    columns: Mapping[str, Any] = value.asDict() if hasattr(value, "asDict") else {}
    parts = [_part(name, bytes(cell)) for name, cell in columns.items() if isinstance(cell, bytes | bytearray)]
    if not parts:
        raise TypeError(
            f"explain takes bytes, or a Row with a BINARY column that is not NULL, got {type(value).__name__}"
        )
    return Explanation(parts)


def _part(title: str, data: bytes) -> ExplainedBytes:
    best = max((of(data) for of in _CANDIDATES), key=lambda candidate: candidate.confidence[0])
    return ExplainedBytes(title, best.format, best.confidence[1], best.explain(data))


# -- which format


class Candidate(NamedTuple):
    """A format that bytes may have, and the evidence for it."""

    format: str
    explain: Callable[[bytes], list[Line]]
    checks: Sequence[bool | None] = ()
    """of each checksum: whether it is right, None if bytes are missing"""
    fits: bool = False
    """whether its sizes are those of the bytes"""
    plausible: bool = False
    """whether a version byte or a magic byte is at its position"""

    @property
    def confidence(self) -> tuple[int, str]:
        """A rank from 0 to 3, and the confidence in words with its reason."""
        right, all = sum(check is True for check in self.checks), len(self.checks)
        if right:
            reason = f"{right} of {all} checksums are right"
            return (3, "sure: every checksum is right") if right == all else (2, f"likely: {reason}")
        if self.fits:
            return 2, "likely: the sizes fit, no checksum is right" if all else "likely: the header fits"
        if self.plausible:
            return 1, "a guess: by the version byte or the magic byte"
        return 0, "unlikely: neither checksums nor sizes nor versions fit"


def _ask(function: str, data: bytes) -> Any:
    return FUNCTIONS[function].decode(pa.array([data], pa.binary()))[0].as_py()


def _databus(data: bytes) -> Candidate:
    event, events = _ask("dbus_event", data), _ask("dbus_events", data)
    valid = [row["status"] == "OK" for row in events]
    if len(events) > 1 and any(valid):
        return Candidate("events of Databus", _stream, valid)
    format = f"an event of Databus, {'V2' if event['version'] == 2 else 'V1'}, {event['byte_order']}"
    # The checksum of zeros is zero.
    checks = [any(data) and event["header_crc_valid"], event["value_crc_valid"]]
    plausible = event["error"] not in ("BAD_MAGIC", "BAD_LENGTH") and len(data) > 1
    fits = event["error"] != "BAD_MAGIC" and event["length"] == len(data)
    return Candidate(format, databus.explain, checks if fits or checks[0] else (), fits, plausible)


def _stream(data: bytes) -> list[Line]:
    """The lines of each event of a stream, with their positions in the stream."""
    return [
        replace(line, position=row["position"] + line.position, field=f"event[{number}].{line.field}")
        for number, row in enumerate(_ask("dbus_events", data))
        for line in databus.explain(row["event"])
    ]


def _kafka(data: bytes) -> Candidate:
    entries = _ask("kafka_batches", data)
    checks = [entry["crc_valid"] for entry in entries]
    if not any(checks) and _has_checksum_of_the_rest(data):
        checks = [True]
    fits = any(entry["size"] is not None for entry in entries)
    plausible = any(entry["magic"] is not None for entry in entries)
    return Candidate("bytes of a Kafka log", kafka.explain, checks, fits, plausible)


def _has_checksum_of_the_rest(data: bytes) -> bool:
    """Whether an entry's checksum is right up to the end of the bytes: it covers neither the size nor a batch's magic byte."""
    if len(data) <= MAGIC:
        return False
    sized = data[: ENTRY["size"].offset] + (len(data) - OVERHEAD).to_bytes(4) + data[OVERHEAD:]
    mended = (sized, sized[:MAGIC] + b"\x02" + sized[MAGIC + 1 :])
    return any([entry["crc_valid"] for entry in _ask("kafka_batches", one)] == [True] for one in mended)


def _message(data: bytes) -> Candidate:
    message = _ask("kafka_message", data)
    format = f"a message of Kafka, magic {message['magic']}"
    return Candidate(format, kafka.explain_message, [message["error"] is None], message["error"] == "CRC_MISMATCH")


def _registered(name: str, data: bytes) -> Candidate:
    """A message of one of the wire formats that name the schema of Avro data."""
    format, table, column = WIRE_FORMATS[name], avro.TABLES[name], pa.array([data], pa.binary())
    [id] = ids_as_text(format.payloads(column).ids).to_pylist()
    fits = id is not None and format.fits(column)
    return Candidate(f"a message with {table.title}, schema {id}", partial(avro.explain, table), fits=fits)


def _unknown(data: bytes) -> list[Line]:
    dump = Dump(data)
    dump.rest("bytes")
    return dump.end()


_CANDIDATES: Final[tuple[Callable[[bytes], Candidate], ...]] = (
    lambda data: Candidate("no known format", _unknown),
    _databus,
    _kafka,
    _message,
    *(partial(_registered, name) for name in avro.TABLES),
)
"""of candidates with the same rank the first one wins"""


# -- for a terminal


def _dump(part: ExplainedBytes, coloured: bool) -> Iterator[str]:
    yield _paint(f"{part.title + ': ' if part.title else ''}{part.format} ({part.sure})", _BOLD, coloured)
    width = max((len(line.field) for line in part.lines), default=0)
    for number, line in enumerate(part.lines):
        colour = colour_of(number, line)
        says = "  ".join(filter(None, (shortened(line.value), _paint(line.note or "", _DIM, coloured))))
        for row, digits in enumerate(rows_of_hex(line)):
            place = f"{line.position + row * _ACROSS:8}  "
            text = f"{line.field:{width}}  {says}" if row == 0 else ""
            yield f"{_paint(place, _DIM, coloured)}{_paint(f'{digits:{3 * _ACROSS}}', colour, coloured)} {text}".rstrip()


def colour_of(number: int, line: Line) -> str:
    """The terminal's code for the colour of a line."""
    return _RED if is_wrong(line) else _COLOURS[number % len(_COLOURS)]


def is_wrong(line: Line) -> bool:
    """Whether an error arises at this line."""
    return any(f"{code}: " in (line.note or "") for code in ERRORS)


def rows_of_hex(line: Line) -> list[str]:
    """The bytes of a line in hex, cut where they are many."""
    if line.hex is None:
        return ["…"]
    shown = bytes.fromhex(line.hex[: 2 * _ACROSS * (_LONGEST + 1)])
    rows = [shown[at : at + _ACROSS].hex(" ") for at in range(0, len(shown), _ACROSS)] or [""]
    return rows if len(rows) <= _LONGEST else [*rows[: _LONGEST - 1], f"… {line.size - (_LONGEST - 1) * _ACROSS} more"]


def shortened(value: str | None, most: int = 60) -> str:
    """A value in one line."""
    text = value or ""
    text = text if text.isprintable() else text.encode("unicode_escape").decode()
    return text if len(text) <= most else f"{text[:most]}…"


def _paint(text: str, colour: str, coloured: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if coloured and text else text


# -- for a notebook


def _table(part: ExplainedBytes) -> Iterator[str]:
    title = f"<b>{html.escape(part.title)}</b>: " if part.title else ""
    yield f"<p>{title}{html.escape(part.format)} <i>({html.escape(part.sure)})</i></p><table>"
    yield "".join(["<tr>", *(f"<th>{name}</th>" for name in ("position", "hex", "field", "value", "note")), "</tr>"])
    for line in part.lines:
        row = (str(line.position), "\n".join(rows_of_hex(line)), line.field, shortened(line.value), line.note or "")
        style = "text-align:left;vertical-align:top;white-space:pre-wrap" + ";color:#900" * is_wrong(line)
        yield "".join(["<tr>", *(f"<td style='{style}'>{html.escape(text)}</td>" for text in row), "</tr>"])
    yield "</table>"
