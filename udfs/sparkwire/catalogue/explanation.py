"""``sparkwire.explain(value)``: some bytes, byte by byte, for a person.

    >>> sparkwire.explain(row.value)

In a terminal it is a dump in columns and in colours, in a notebook a table. Which format the bytes are in it finds out
itself, and says how sure it is: checksums leave no doubt, a header alone is a guess.
"""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Iterator, Mapping
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

_SURE, _LIKELY, _GUESS, _NO = range(3, -1, -1)
_WORDS: Final = {_SURE: "sure", _LIKELY: "likely", _GUESS: "a guess", _NO: "unlikely"}
_ACROSS: Final = 8
"""bytes in hex in one line of a dump"""
_LONGEST: Final = 6
"""lines of a dump that one field takes"""
_BOLD, _DIM, _RED, _COLOURS = "1", "2", "31", ("36", "33", "32", "35", "34")


class ExplainedBytes(NamedTuple):
    """Some bytes in one format."""

    title: str
    """which bytes these are, empty where there are no others"""
    format: str
    sure: str
    """how sure the format is, and why"""
    lines: list[Line]


class Explanation(NamedTuple):
    """What bytes say: printed it is a dump, in a notebook a table."""

    parts: list[ExplainedBytes]

    def __repr__(self) -> str:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return "\n\n".join("\n".join(_dump(part, coloured)) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join(_table(part) for part in self.parts)


class _Guess(NamedTuple):
    """A format that bytes may be in."""

    certainty: int
    format: str
    why: str
    explain: Callable[[bytes], list[Line]]


def explain(value: Any) -> Explanation:
    """What every byte of a value is, what it says and what is wrong with it.

    Parameters
    ----------
    value
        bytes: events of Databus, a message of Kafka or the bytes of its log; or a Row of a DataFrame, whose BINARY columns it
        explains.

    Raises
    ------
    TypeError
        where it is neither, or a Row without a BINARY that is not NULL.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return Explanation([_part("", bytes(value))])
    columns = {name: cell for name, cell in _columns(value).items() if isinstance(cell, bytes | bytearray)}
    if not columns:
        raise TypeError(
            f"explain takes bytes, or a Row with a BINARY column that is not NULL, got {type(value).__name__}"
        )
    return Explanation([_part(name, bytes(cell)) for name, cell in columns.items()])


def _columns(row: Any) -> Mapping[str, Any]:
    columns: Mapping[str, Any] = row.asDict() if hasattr(row, "asDict") else {}
    return columns


def _part(title: str, data: bytes) -> ExplainedBytes:
    best = max((guess(data) for guess in _GUESSES), key=lambda guess: guess.certainty)
    if best.certainty == _NO:
        best = _Guess(_NO, "no format that is known", "neither checksums nor lengths nor versions fit", _unknown)
    return ExplainedBytes(title, best.format, f"{_WORDS[best.certainty]}: {best.why}", best.explain(data))


# -- which format


def _ask(function: str, data: bytes) -> Any:
    return FUNCTIONS[function].decode(pa.array([data], pa.binary()))[0].as_py()


def _as_databus(data: bytes) -> _Guess:
    event = _ask("dbus_event", data)
    name = f"an event of Databus, {'V2' if event['version'] == 2 else 'V1'}, {event['byte_order']}"
    if event["is_valid"] and event["length"] == len(data):
        return _Guess(_SURE, name, "its checksums are right", databus.explain)
    events = _ask("dbus_events", data)
    valid = [row for row in events if row["status"] == "OK"]
    if len(events) > 1 and valid:
        why = f"{len(valid)} of {len(events)} have right checksums"
        return _Guess(_SURE if len(valid) == len(events) else _LIKELY, "events of Databus", why, _stream)
    if event["header_crc_valid"] and any(data):
        return _Guess(_LIKELY, name, "its header's checksum is right", databus.explain)
    if event["error"] != "BAD_MAGIC" and event["length"] == len(data):
        right = {True: "right", False: "wrong", None: "not to be told"}
        value, header = right[event["value_crc_valid"]], right[event["header_crc_valid"]]
        both = (
            f"both its checksums are {header}"
            if value == header
            else f"its header's checksum is {header}, its value's {value}"
        )
        return _Guess(_LIKELY, name, f"its length is that of the bytes, {both}", databus.explain)
    plausible = event["error"] not in ("BAD_MAGIC", "BAD_LENGTH") and len(data) > 1
    return _Guess(_GUESS if plausible else _NO, name, "by its first byte", databus.explain)


def _stream(data: bytes) -> list[Line]:
    """Each event of a stream, with its positions in the stream."""
    lines = []
    for number, row in enumerate(_ask("dbus_events", data)):
        for line in databus.explain(row["event"]):
            position = row["position"] + line.position
            lines.append(replace(line, position=position, field=f"event[{number}].{line.field}"))
    return lines


def _as_kafka(data: bytes) -> _Guess:
    name = "bytes of a Kafka log"
    entries = _ask("kafka_batches", data)
    right = sum(bool(entry["crc_valid"]) for entry in entries)
    if entries and right == len(entries):
        return _Guess(_SURE, name, "all its checksums are right", kafka.explain)
    if right:
        return _Guess(_LIKELY, name, f"{right} of {len(entries)} entries have a right checksum", kafka.explain)
    if _has_checksum_of_the_rest(data):
        return _Guess(_SURE, name, "its checksum is right, its size or its magic byte is not", kafka.explain)
    if any(entry["size"] is not None for entry in entries):
        return _Guess(_LIKELY, name, "an entry has the size that it says, its checksum is wrong", kafka.explain)
    plausible = any(entry["magic"] is not None for entry in entries)
    return _Guess(_GUESS if plausible else _NO, name, "by the place of its magic byte", kafka.explain)


def _has_checksum_of_the_rest(data: bytes) -> bool:
    """Whether an entry's checksum is right up to the end of the bytes: it covers neither the size nor a batch's magic byte."""
    if len(data) <= MAGIC:
        return False
    sized = data[: ENTRY["size"].offset] + (len(data) - OVERHEAD).to_bytes(4) + data[OVERHEAD:]
    mended = (sized, sized[:MAGIC] + b"\x02" + sized[MAGIC + 1 :])
    return any([entry["crc_valid"] for entry in _ask("kafka_batches", one)] == [True] for one in mended)


def _as_message(data: bytes) -> _Guess:
    message = _ask("kafka_message", data)
    name = f"a message of Kafka, magic {message['magic']}"
    if message["error"] is None:
        return _Guess(_SURE, name, "its checksum is right", kafka.explain_message)
    if message["error"] == "CRC_MISMATCH":
        return _Guess(_LIKELY, name, "its sizes are those of the bytes, its checksum is wrong", kafka.explain_message)
    return _Guess(_NO, name, "", kafka.explain_message)


def _as_registered(name: str, data: bytes) -> _Guess:
    """A message of one of the wire formats that name the schema of Avro data."""
    format, column = WIRE_FORMATS[name], pa.array([data], pa.binary())
    title, lines = avro.EXPLAINED[name]
    [id] = ids_as_text(format.payloads(column).ids).to_pylist()
    fits = id is not None and format.fits(column)
    return _Guess(_LIKELY if fits else _NO, f"{title}, schema {id}", "by what it begins with", lines)


_GUESSES: Final[tuple[Callable[[bytes], _Guess], ...]] = (
    _as_databus,
    _as_kafka,
    _as_message,
    *(partial(_as_registered, name) for name in avro.EXPLAINED),
)
"""of those that are as sure the first one wins"""


def _unknown(data: bytes) -> list[Line]:
    dump = Dump(data)
    dump.rest("bytes")
    return dump.end()


# -- for a terminal


def _dump(part: ExplainedBytes, coloured: bool) -> Iterator[str]:
    yield _paint(f"{part.title + ': ' if part.title else ''}{part.format} ({part.sure})", _BOLD, coloured)
    width = max((len(line.field) for line in part.lines), default=0)
    for number, line in enumerate(part.lines):
        colour = colour_of(number, line)
        data = rows_of_hex(line)
        says = "  ".join(filter(None, (shortened(line.value), line.note and _paint(line.note, _DIM, coloured))))
        for row, digits in enumerate(data):
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
    pairs = [line.hex[at : at + 2] for at in range(0, len(line.hex), 2)]
    rows = [" ".join(pairs[at : at + _ACROSS]) for at in range(0, len(pairs), _ACROSS)] or [""]
    return rows if len(rows) <= _LONGEST else [*rows[: _LONGEST - 1], f"… {line.size - (_LONGEST - 1) * _ACROSS} more"]


def shortened(value: str | None, most: int = 60) -> str | None:
    """A value in one line."""
    if value is None:
        return None
    text = value.encode("unicode_escape").decode() if not value.isprintable() else value
    return text if len(text) <= most else f"{text[:most]}…"


def _paint(text: str, colour: str, coloured: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if coloured and text else text


# -- for a notebook


def _table(part: ExplainedBytes) -> str:
    title = f"<b>{html.escape(part.title)}</b>: " if part.title else ""
    head = f"<p>{title}{html.escape(part.format)} <i>({html.escape(part.sure)})</i></p>"
    names = "".join(
        f"<th style='text-align:left'>{name}</th>" for name in ("position", "hex", "field", "value", "note")
    )
    rows = "".join(_table_row(line) for line in part.lines)
    return f"{head}<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"


def _table_row(line: Line) -> str:
    style = " style='background:#fdd;color:#900'" if is_wrong(line) else ""
    digits = "<br>".join(html.escape(row) for row in rows_of_hex(line))
    left = "style='text-align:left;vertical-align:top'"
    cells = [str(line.position), f"<code>{digits}</code>"]
    cells += [html.escape(text) for text in (line.field, shortened(line.value) or "", line.note or "")]
    return f"<tr{style}>" + "".join(f"<td {left}>{cell}</td>" for cell in cells) + "</tr>"
