"""The wire formats of payloads, and the error for a column that has another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro import payloads
from sparkwire.avro.functions import schema_ids
from sparkwire.avro.payloads import Payloads
from sparkwire.avro.schemas import Schemas, with_digests, with_fingerprints
from sparkwire.base.grammar import Struct
from sparkwire.base.printable import value_error
from sparkwire.databus.event_payloads import of_events, result_of

_LIKELY_IDS: Final = 1 << 20
"""A registry numbers schemas from 1. Four bytes of other data rarely have a number below this one."""
_MANY: Final = 100
"""number of rows from which on it is an error that none of them can be read"""


class WireFormat(NamedTuple):
    """A wire format, and how to read it."""

    title: str
    payloads: Callable[[pa.Array], Payloads]
    fits: Callable[[pa.Array], bool]
    """whether all values of a column without NULLs certainly have this format"""
    with_headers: Callable[[pa.Array, pa.Array, str], Payloads] | None = None
    """Reads messages, headers, and the word ``key`` or ``value``. None if record headers cannot name the schema."""
    header: Struct | None = None
    """the table of the header, if a value itself identifies the format, followed by the payload"""
    named_by_text: Callable[[Schemas], Schemas] | None = None
    """Adds the fingerprints by which messages name schemas. None if a registry assigns the ids."""
    bytes_without_size: bool = False
    """whether a value of the schema ``bytes`` consists of all bytes after the wire-format header, without a size"""

    def split(self, messages: pa.Array, headers: pa.Array | None, of: str) -> Payloads:
        """The schema ids and payloads of messages. It uses record headers if the format does; ``of`` is value or key."""
        if headers is not None and self.with_headers is not None:
            return self.with_headers(messages, headers, of)
        return self.payloads(messages)

    def with_names(self, schemas: Schemas) -> Schemas:
        """The schemas, also under the fingerprints that messages of this format contain."""
        return schemas if self.named_by_text is None else self.named_by_text(schemas)


def _have_prefix(values: pa.Array) -> bool:
    ids, valid = schema_ids(values)
    return bool(np.all(valid & (ids > 0) & (ids < _LIKELY_IDS)))


def _have_wide_prefix(values: pa.Array) -> bool:
    ids = payloads.of_apicurio(values).ids
    likely = pc.and_(pc.greater(ids, 0), pc.less(ids, _LIKELY_IDS)).fill_null(False)
    return bool(pc.all(likely).as_py()) and not _have_prefix(values)


def _have_event(values: pa.Array) -> bool:
    return bool(result_of("dbus_error", values).null_count)


def _have_all(of: Callable[[pa.Array], Payloads]) -> Callable[[pa.Array], bool]:
    """A check that all values have the format's marker and lengths, which other data does not have by chance."""
    return lambda values: not of(values).ids.null_count


WIRE_FORMATS: Final[Mapping[str, WireFormat]] = {
    "confluent": WireFormat(
        "messages with Confluent's wire format header",
        payloads.of_confluent,
        _have_prefix,
        header=payloads.CONFLUENT,
        bytes_without_size=True,
    ),
    "confluent_header": WireFormat(
        "messages with Confluent's header",
        payloads.of_confluent,
        lambda values: False,  # values alone do not show this format
        payloads.with_headers("confluent_header", payloads.of_confluent),
        bytes_without_size=True,
    ),
    "apicurio": WireFormat(
        "messages with Apicurio's wire format header",
        payloads.of_apicurio,
        _have_wide_prefix,
        payloads.with_headers("apicurio", payloads.of_apicurio),
        payloads.APICURIO,
    ),
    "apicurio_content_id": WireFormat(
        "messages with Apicurio's wire format header and content ids",
        payloads.of_apicurio,
        _have_wide_prefix,
        payloads.with_headers("apicurio", payloads.of_apicurio),
    ),
    "apicurio_global_id": WireFormat(
        "messages with Apicurio's wire format header and global ids",
        payloads.of_apicurio_global_ids,
        _have_wide_prefix,
        payloads.with_headers("apicurio_global_id", payloads.of_apicurio_global_ids),
    ),
    "glue": WireFormat(
        "messages with AWS Glue's header",
        payloads.of_glue,
        _have_all(payloads.of_glue),
        header=payloads.GLUE,
    ),
    "single_object": WireFormat(
        "Avro's single objects",
        payloads.of_single_objects,
        _have_all(payloads.of_single_objects),
        header=payloads.SINGLE_OBJECT,
        named_by_text=with_fingerprints,
    ),
    "databus": WireFormat(
        "Databus events",
        of_events,
        _have_event,
        named_by_text=with_digests,
    ),
}


def check_fit(taken_for: str, values: pa.Array, errors: pa.Array) -> None:
    """If no row could be read, check that the column has the expected wire format.

    ValueError if the rows have another wire format, or if there are many rows and none has any known format.
    """

    values_present = values.drop_null()
    if not len(values_present) or pc.sum(errors.is_valid()).as_py() < len(values_present):
        return
    taken = WIRE_FORMATS[taken_for]
    for name, other in WIRE_FORMATS.items():
        if other is not taken and not taken.fits(values_present) and other.fits(values_present):
            raise value_error(f"the column is {other.title}, not {taken.title}: pass wire_format={name!r}")
    if len(values_present) >= _MANY and not _any_fits(taken, values_present):
        begins = values_present[0].as_py()[:8].hex(" ")
        raise value_error(
            f"the column is not {taken.title}: none of {len(values_present)} rows has its header. The first row begins with "
            f"{begins or 'no byte'}. For Avro data without a header, pass by=, the column that identifies their schemas"
        )


def _any_fits(taken: WireFormat, values: pa.Array) -> bool:
    return bool(taken.payloads(values).ids.is_valid().true_count)
