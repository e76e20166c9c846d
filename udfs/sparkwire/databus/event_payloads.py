"""The Avro payloads of Databus events, with the fingerprints of their schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.payloads import Payloads
from sparkwire.avro.registry import Registry
from sparkwire.avro.schemas import Schemas, with_digests
from sparkwire.avro.typed_rows import RowsReader, by_name
from sparkwire.core.column import bools_of
from sparkwire.databus.functions import FORMAT
from sparkwire.kernels.load import Bools

_FUNCTIONS: Final = FORMAT.by_name
_VERSION: Final = re.compile(r"_V[0-9]+$")
EVENT_COLUMNS: Final = ("sequence", "timestamp", "src_id", "opcode", "key")
"""fields of the Databus event that a typed row has, as columns with underscores around the name"""


def result_of(function: str, column: pa.Array) -> pa.Array:
    """The result of a Databus function on a column."""
    return _FUNCTIONS[function].decode(column)


def is_data(events: pa.Array) -> Bools:
    """Whether each event is a data event."""
    return bools_of(pc.equal(result_of("dbus_event_type", events), "DATA").fill_null(False))


def of_events(events: pa.Array) -> Payloads:
    """The payloads of data events. Control events have none; an empty payload of a delete counts as none."""
    is_delete = pc.equal(result_of("dbus_opcode", events), "DELETE").fill_null(False)
    is_empty = pc.equal(result_of("dbus_value_size", events), 0).fill_null(False)
    values = pc.if_else(
        pc.and_not(pa.array(is_data(events)), pc.and_(is_delete, is_empty)), result_of("dbus_value", events), None
    )
    return Payloads.binary(values, result_of("dbus_schema_id", events), result_of("dbus_error", events))


def schemas_of_events(schemas: Any) -> Schemas:
    """The schemas that a caller passes, or those of a `Registry`. Raises ValueError if it finds schemas only by their ids."""
    registry = Registry.of(schemas)
    ids = registry.ids()
    if ids is None:
        raise ValueError(
            "a fingerprint identifies the schema of an event, but this registry finds schemas by id: pass subjects=[…] to it, "
            "so that it has their schemas"
        )
    return with_digests(registry.schemas(ids))


def source_name(record: str) -> str:
    """The source of a record. Databus's schema generators name the records of a source ``Person_V1``, ``Person_V2``."""
    return _VERSION.sub("", record)


def by_source(schemas: Schemas) -> Mapping[str, RowsReader]:
    """A reader for each source, with all versions of its schema."""
    return by_name(schemas, named=source_name)
