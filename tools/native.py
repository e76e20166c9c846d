"""Native SQL equivalents: header fields as plain SQL, for queries that stay in the JVM.

A native SQL equivalent reads one layout in one byte order from the start of the row, without checks. It is generated from the
same table as the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkwire.base.grammar import Layout, Placed


def native_select(title: str, layout: Layout, column: str, types: Mapping[str, str]) -> str:
    """One SELECT from ``column`` of every field of a big-endian layout that has a type in ``types``."""
    places = {name: placed for name, placed in layout.places.items() if name in types}
    fields = ",\n".join(f"  {expression(placed, column, types[name])} AS {name}" for name, placed in places.items())
    return f"-- {title}\nSELECT\n{fields}\nFROM {column}s;\n"


def expression(placed: Placed, column: str, type: str) -> str:
    """A field as a SQL expression of the type ``type``."""
    field = placed.field
    part = f"substring({column}, {placed.offset + 1}, {field.width})"
    if field.wire == "bytes16":
        return part
    if field.width == 8:
        return f"CAST(conv(hex({part}), 16, -10) AS BIGINT)"
    number = f"CAST(conv(hex({part}), 16, 10) AS BIGINT)"
    if field.wire.startswith("i"):
        # Two's complement: subtract twice the value of the top bit if it is set.
        bits = 8 * field.width
        number = f"{number} - shiftleft(shiftright({number}, {bits - 1}), {bits})"
    return f"CAST({number} AS {type})"
