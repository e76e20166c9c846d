"""The answers of the scalar functions, each a column taken from a scan of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.errors import ERRORS, OK
from sparkwire.core.column import from_codes, primitive, struct, timestamps
from sparkwire.datahub import values
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.datahub.images import Images, json_text, keys_text, text_map
from sparkwire.datahub.layout import OPERATIONS
from sparkwire.kernels.json_grammar import OBJECT

MessageAccessor = Callable[[BlobColumn], pa.Array]

_CANONICAL: Final = tuple(operation.canonical for operation in OPERATIONS)
_TUPLE_TYPES: Final = tuple(operation.tuple_type for operation in OPERATIONS)
_HAS_BEFORE: Final = np.array([*(operation.image == "before" for operation in OPERATIONS), False])
_IN_TUPLES: Final = np.array([*(bool(operation.tuple_type) for operation in OPERATIONS), False])
_NO_YES: Final = ("N", "Y")


def text(field: str) -> MessageAccessor:
    """A field's text: what a string says, of anything else its JSON as written."""
    return lambda messages: values.texts(messages.value(field))


def millis(field: str) -> MessageAccessor:
    """[ms since epoch], NULL for what is not an integer."""
    return lambda messages: primitive(*messages.time(field))


def time(field: str) -> MessageAccessor:
    def answer(messages: BlobColumn) -> pa.Array:
        numbers, valid = messages.time(field)
        return timestamps(numbers, "ms", valid)

    return answer


def operation(messages: BlobColumn) -> pa.Array:
    return from_codes(messages.operations, _CANONICAL)


def primary_key(messages: BlobColumn) -> pa.Array:
    return messages.primary_keys


def columns(messages: BlobColumn) -> pa.Array:
    return messages.column_lists


def before(messages: BlobColumn) -> pa.Array:
    return json_text(messages.before)


def after(messages: BlobColumn) -> pa.Array:
    return json_text(messages.after)


def before_map(messages: BlobColumn) -> pa.Array:
    return text_map(messages.before, messages.declared)


def after_map(messages: BlobColumn) -> pa.Array:
    return text_map(messages.after, messages.declared)


def ddl_meta(messages: BlobColumn) -> pa.Array:
    return values.from_base64(values.texts(messages.value("ddl_meta")))


def error(messages: BlobColumn) -> pa.Array:
    return from_codes(messages.errors, ERRORS)


def is_valid(messages: BlobColumn) -> pa.Array:
    return primitive(messages.errors == OK)


def tuple_columns(messages: BlobColumn) -> pa.Array:
    """The metadata columns of a TUPLE topic, NULL for what such a topic does not carry."""
    operations = messages.operations
    carried = _IN_TUPLES[operations]
    has_before = _HAS_BEFORE[operations].astype(np.int8)
    return struct(
        {
            "_sequence_id_": values.texts(messages.value("sequence_id")),
            "_operation_type_": from_codes(operations, _TUPLE_TYPES),
            "_excute_time_": primitive(*messages.event_time),
            "_source_table_": values.texts(messages.value("table")),
            "_before_image_": from_codes(has_before, _NO_YES),
            "_after_image_": from_codes(np.int8(1) - has_before, _NO_YES),
        },
        carried,
    )


def shard_key(messages: BlobColumn) -> pa.Array:
    """The primary key's values in the after image, else in the before image; the table's name without a key or image."""
    before, after = messages.before.objects, messages.after.objects
    has_after = after.kinds == OBJECT
    images = Images(before.unless(has_after, after))
    keys = keys_text(images, messages.key_names)
    return pc.coalesce(keys, values.texts(messages.value("table")))
