"""What most rows of the catalogue are made of: one answer out of a scan, or all of them as a STRUCT.

A *scan* is what one pass over a column finds: a class of the format, whose steps are computed once,
when first asked for. A scalar function asks for one answer, the struct function of a format for all
of them, so there is one implementation of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import pyarrow as pa

from sparkwire.column import Identity, identity_of, struct
from sparkwire.function import Function

Scan = TypeVar("Scan")


class Shared(Generic[Scan]):
    """One scan a batch, for all the functions that a query calls on it.

    Spark hands each of them the batch anew, around the same buffers. The last batch is kept with its scan, so that its
    memory cannot become another batch's; what Arrow says may change is never shared.
    """

    def __init__(self, scan: Callable[[pa.Array], Scan]) -> None:
        self.scan = scan
        self._latest: tuple[Identity, pa.Array, Scan] | None = None

    def __call__(self, column: pa.Array) -> Scan:
        identity = identity_of(column)
        if identity is None:
            return self.scan(column)
        if self._latest is None or self._latest[0] != identity:
            self._latest = (identity, column, self.scan(column))
        return self._latest[2]


@dataclass(frozen=True)
class Accessor(Generic[Scan]):
    """The decoder of a scalar function: ``answer`` taken from a ``scan`` of the column."""

    scan: Callable[[pa.Array], Scan]
    accessor: Callable[[Scan], pa.Array]

    def __call__(self, column: pa.Array) -> pa.Array:
        return self.accessor(self.scan(column))


def struct_function(
    declaration: str,
    prefix: str,
    scan: Callable[[pa.Array], Scan],
    functions: Sequence[Function],
    doc: str,
    example: str,
) -> Function:
    """The function that answers all of ``functions`` from one scan, its fields named without ``prefix``.

    ``declaration`` is the signature without the answer: ``dbus_event(event BINARY)``. Every decoder of
    ``functions`` is an ``Accessor`` from such a scan.
    """
    answers = {f.name.removeprefix(prefix): cast(Accessor[Scan], f.decoder).accessor for f in functions}
    returns = ", ".join(f"{f.name.removeprefix(prefix)} {f.returns}" for f in functions)

    def decode(column: pa.Array) -> pa.Array:
        scanned = scan(column)
        return struct({field: answer(scanned) for field, answer in answers.items()})

    return Function(f"{declaration} -> STRUCT<{returns}>", doc, decode, example)
