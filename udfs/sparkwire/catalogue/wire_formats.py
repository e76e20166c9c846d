"""What stands around the payloads of a column, and the sentence for a column that was taken for another one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.functions import schema_ids
from sparkwire.avro.typed_rows import Payloads, of_messages
from sparkwire.databus.payloads import ask, of_events

_LIKELY_IDS: Final = 1 << 20
"""a registry counts from 1; four bytes of anything else are rarely below"""
_MANY: Final = 100
"""rows none of which can be read are no accident any more"""


class WireFormat(NamedTuple):
    """One of them."""

    title: str
    payloads: Callable[[pa.Array], Payloads]
    fits: Callable[[pa.Array], bool]
    """whether values without NULL are of it, beyond a doubt"""
    advice: str
    """what ``rows`` takes for it"""


def _have_prefix(values: pa.Array) -> bool:
    ids, valid = schema_ids(values)
    return bool(np.all(valid & (ids > 0) & (ids < _LIKELY_IDS)))


def _have_event(values: pa.Array) -> bool:
    return bool(ask("dbus_error", values).null_count)


WIRE_FORMATS: Final[Mapping[str, WireFormat]] = {
    "confluent": WireFormat(
        "messages with Confluent's prefix", of_messages, _have_prefix, "give schemas as a mapping from ids"
    ),
    "databus": WireFormat("Databus events", of_events, _have_event, "give schemas as a folder or a list"),
}


def check_fit(name: str, values: pa.Array, errors: pa.Array) -> None:
    """That a column has what it was taken for, asked where none of its rows could be read.

    Raises
    ------
    ValueError
        where the rows are of another wire format, or are many and all of none: one sentence.
    """
    there = values.drop_null()
    if not len(there) or pc.sum(errors.is_valid()).as_py() < len(there):
        return
    taken = WIRE_FORMATS[name]
    for other in WIRE_FORMATS.values():
        if other is not taken and not taken.fits(there) and other.fits(there):
            raise ValueError(f"rows has taken the column for {taken.title}, and it has {other.title}: {other.advice}")
    if len(there) >= _MANY and not _any_fits(taken, there):
        begins = there[0].as_py()[:8].hex(" ")
        raise ValueError(
            f"rows has taken the column for {taken.title}, and none of {len(there)} rows is one, the first begins "
            f"{begins or 'nowhere'}: bare Avro data are read with by=, the column that names their schemas"
        )


def _any_fits(taken: WireFormat, values: pa.Array) -> bool:
    return bool(taken.payloads(values).ids.is_valid().true_count)
