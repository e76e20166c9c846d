"""Write the tables of a format's page: its layouts, and its structs with variable parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import NamedTuple, TypeVar

from sparkwire.base.grammar import Covered, Field, Layout, Part, PresentIf, Repeated, Sized, Struct, Varint

_T = TypeVar("_T")


def sections(package: str) -> list[str]:
    """The lines of all tables of a format."""
    layouts = list(_of_type(Layout, package))
    return [
        *(line for layout in layouts for line in _layout(layout)),
        *(line for struct in _of_type(Struct, package) for line in _struct(struct, layouts)),
    ]


def cell(doc: str) -> str:
    """Escape a text for Markdown, also in a table."""
    return doc.replace("<", "&lt;").replace("|", "\\|")


def _of_type(kind: type[_T], package: str) -> Iterable[_T]:
    """The objects of a type in a format's modules, each once. Modules about its files are not loaded."""
    own = re.compile(rf"{re.escape(package)}(\.\w+)?")
    names = sorted(filter(own.fullmatch, sys.modules), key=lambda name: (not name.endswith(".layout"), name))
    modules = [sys.modules[name] for name in names]
    return dict.fromkeys(thing for module in modules for thing in _things(module) if isinstance(thing, kind))


def _things(module: ModuleType) -> Iterator[object]:
    for name, thing in vars(module).items():
        if not name.startswith("_"):
            yield from thing if isinstance(thing, tuple) else (thing,)


def _layout(layout: Layout) -> list[str]:
    rows = [
        f"| {placed.offset} | `{name}` | `{placed.field.wire}` | {cell(placed.field.doc)} |"
        for name, placed in sorted(layout.places.items(), key=lambda place: place[1].offset)
    ]
    return [f"## Layout: {layout.name}", "", "| byte | field | type | meaning |", "|---|---|---|---|", *rows, ""]


def _struct(struct: Struct, layouts: Sequence[Layout]) -> list[str]:
    rows = _shared(list(_rows(struct.parts, "")), layouts)
    head = [f"## Struct: {struct.title}", "", "| part | type | present if | meaning |", "|---|---|---|---|"]
    return [*head, *rows, "", *map(_covered, struct.covered), *[""] * bool(struct.covered)]


class _Row(NamedTuple):
    """A row of the table of a struct."""

    name: str
    type: str
    present: str
    doc: str

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.type} | {self.present} | {cell(self.doc)} |"


def _rows(parts: Sequence[Part], present: str) -> Iterator[_Row]:
    for part in parts:
        match part:
            case Field():
                yield _Row(part.name, f"`{part.wire}`", present, part.doc)
            case Varint():
                yield _Row(part.name, "`varint`" if part.bits == 32 else "`varlong`", present, part.doc)
            case Sized():
                yield from _number_row(part.size, present)
                size = part.size if isinstance(part.size, str) else part.size and part.size.name
                type = f"`{size}` bytes" if size else "bytes to the end"
                holds = "" if part.holds is None else ", compressed"
                yield _Row(part.name, type + holds, present, part.doc)
            case Repeated():
                yield from _number_row(part.count, present)
                count = part.count if isinstance(part.count, str) else part.count and part.count.name
                yield _Row(part.of.name, f"`{count}` times" if count else "to the end", present, part.of.title)
            case PresentIf():
                bits = f"{part.field} & {part.mask} ="
                for number, present_parts in part.cases.items():
                    yield from _rows(present_parts, _and(present, f"`{bits} {number}`"))
                yield from _rows(part.otherwise or (), _and(present, "other bits"))
            case Struct():
                yield from _rows(part.parts, present)


def _number_row(number: Field | Varint | str | None, present: str) -> Iterator[_Row]:
    return iter(()) if number is None or isinstance(number, str) else _rows([number], present)


def _and(*conditions: str) -> str:
    return ", ".join(filter(None, conditions))


def _shared(rows: Sequence[_Row], layouts: Sequence[Layout]) -> list[str]:
    """The rows as text; rows that are the first fields of a layout become one row."""
    common, layout = max(((_common(rows, layout), layout) for layout in layouts), key=_fit, default=(0, None))
    if layout is None or common < 2:
        return list(map(str, rows))
    fields = f"`{rows[0].name}` to `{rows[common - 1].name}`"
    return [f"| {fields} | | | as in layout {layout.name} |", *map(str, rows[common:])]


def _fit(shared: tuple[int, Layout]) -> tuple[int, int]:
    """The layout that shares the most fields; of several, the one without further fields."""
    return shared[0], -len(shared[1].fields)


def _common(rows: Sequence[_Row], layout: Layout) -> int:
    """The number of rows that equal the first fields of a layout."""
    same = [
        (row.name, row.type, row.present) == (field.name, f"`{field.wire}`", "")
        for row, field in zip(rows, layout.fields, strict=False)
    ]
    return [*same, False].index(False)


def _covered(covered: Covered) -> str:
    after = _names(covered.after or [covered.checksum])
    return f"- `{covered.checksum}` is a `{covered.crc}`. Its span begins after `{after}` and ends with `{_names(covered.last)}`."


def _names(parts: Sequence[str]) -> str:
    return "` or `".join(parts)
