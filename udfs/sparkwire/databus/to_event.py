"""``to_dbus_event``: encode events from any of the fields that ``dbus_event`` returns.

A stored field takes precedence over the fields derived from it:

- `attributes` over `opcode`, `is_trace`, `is_replicated` and `key_type`;
- `key_long` and `key_bytes` over `key`;
- `schema_id` over V1's `schema_version`;
- `timestamp_nanos` over `timestamp`;
- `src_id` over `is_end_of_period` and `event_type`.

It computes lengths and checksums. It sets V2's attribute bit of the metadata or payload part if the part has data, a schema id
or a schema version. It ignores `status`, `error` and `is_valid`.

A missing or NULL field is 0, false or empty. The default version is 0, the default byte order BIG_ENDIAN, the default schema id
16 zeros. Without `attributes` and `key_type`, the key's fields determine its kind: LONG with `key_long`, SCHEMA with a key
schema, BYTES with `key_bytes` or `key`. Without any of these, the key is the LONG 0.

A value that an event cannot hold is an error; it truncates and drops nothing. Examples:

- a number beyond the range of its field (V1 has a 16-bit source id, a part has 14 bits of version);
- metadata or a SCHEMA key in V1, or two partition ids in V2;
- a schema id whose size is not 16 (in V2: 16 or 4);
- a key field that does not fit the kind of key.

`to_dbus_event(dbus_event(x))` is `x` for every valid event, unless the event has bytes that no field shows. Such bytes are after
the key in V2's header, after the announced parts, or after the event. From a corrupt event, it makes a valid one with the fields
that can be read. An unknown version is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import Spans, binary_of, bools_of, build, empty, plain_value, read_only, spans_of, to_codes
from sparkwire.databus import layout
from sparkwire.databus.event_bytes import FIXED, Parts, measure_events, write_events
from sparkwire.databus.event_kernels import key_kinds
from sparkwire.databus.parts import (
    DIGEST,
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    NUMBERS,
    SPANS,
    VALUE,
    VERSION,
)
from sparkwire.kernels import Bools, Ints

NAME: Final = "to_dbus_event"
_SHORT: Final = (-(2**15), 2**15 - 1)
_INT: Final = (-(2**31), 2**31 - 1)
_LONG: Final = (-(2**63), 2**63 - 1)
_BITS: Final = (0, 2**16 - 1)
_PART_VERSION: Final = (-(2**13), 2**13 - 1)

# Event types with a single source id.
_SOURCE_IDS: Final = {
    "END_OF_PERIOD": layout.END_OF_PERIOD,
    "CHECKPOINT": layout.CHECKPOINT,
    "SCN_REGRESS": layout.SCN_REGRESS,
}
Codes = npt.NDArray[np.int8]
_NO_BYTES: Final = binary_of(pa.nulls(0)).data


def to_event(column: pa.StructArray) -> pa.Array[Any]:
    """BINARY: each STRUCT serialized, NULL for NULL."""
    inputs = InputFields(column)
    is_v2 = _is_v2(inputs)
    kinds = _kinds(inputs, is_v2)
    parts = _parts(inputs, is_v2, kinds)
    variants = np.where(is_v2, layout.V2_BIG, layout.V1_BIG).astype(np.int8)
    variants += inputs.codes("byte_order", layout.BYTE_ORDERS) == 1
    sizes = empty(inputs.rows, np.int64)
    measure_events(variants, kinds, parts, sizes)
    reject(sizes > _INT[1], f"an event of up to {_INT[1]} bytes", sizes)
    fixed = _fixed(inputs, is_v2, kinds, parts, sizes)
    sizes[~inputs.present] = -1
    return build(sizes, lambda offsets, out: write_events(variants, kinds, fixed, parts, offsets, out), pa.binary())


def _is_v2(inputs: InputFields) -> Bools:
    versions = inputs.numbers("version", *_LONG)
    reject((versions != 0) & (versions != 2), "version 0 or 2", versions)
    return np.asarray(versions == 2)


# -- the key


def _kinds(inputs: InputFields, is_v2: Bools) -> Codes:
    """The kind of every key."""
    kinds = key_kinds(inputs.numbers("attributes", *_BITS), is_v2)
    if not inputs.has("attributes").all():
        kinds = np.where(inputs.has("attributes"), kinds, _derived_kinds(inputs))
    reject((kinds == layout.SCHEMA_KEY) & ~is_v2, "a SCHEMA key in V2", "one in V1")
    _reject_key(kinds, inputs.has("key_long") & (kinds != layout.LONG_KEY), "key_long")
    _reject_key(kinds, inputs.has("key_bytes") & ((kinds == layout.LONG_KEY) | (kinds == layout.NO_KEY)), "key_bytes")
    _reject_key(kinds, inputs.has("key") & (kinds == layout.NO_KEY), "key")
    _reject_key(kinds, _has_key_schema(inputs) & (kinds != layout.SCHEMA_KEY), "key_schema_id or key_schema_version")
    return kinds


def _derived_kinds(inputs: InputFields) -> Codes:
    """The kind of key from `key_type` or, if it is NULL, from the key's own fields."""
    derived = inputs.codes("key_type", layout.KEY_TYPES)
    shown = np.where(inputs.has("key_bytes") | inputs.has("key"), layout.BYTES_KEY, layout.LONG_KEY)
    shown = np.where(_has_key_schema(inputs), layout.SCHEMA_KEY, shown)
    shown[inputs.has("key_long")] = layout.LONG_KEY
    return np.where(derived >= 0, derived, shown).astype(np.int8)


def _has_key_schema(inputs: InputFields) -> Bools:
    return inputs.has("key_schema_id") | inputs.has("key_schema_version")


def _reject_key(kinds: Codes, rows: Bools, field: str) -> None:
    if rows.any():
        kind = kinds[rows.argmax()]
        takes = "no key with attributes that have none"
        if kind != layout.NO_KEY:
            takes = f"{'key_long' if kind == layout.LONG_KEY else 'key_bytes'} for a {layout.KEY_TYPES[kind]} key"
        reject(rows, takes, field)


def _long_keys(inputs: InputFields, kinds: Codes) -> Ints:
    values, texts = inputs.numbers("key_long", *_LONG), inputs.array("key")
    derived = inputs.has("key") & ~inputs.has("key_long") & (kinds == layout.LONG_KEY)
    if texts is not None and derived.any():
        values = values.copy()
        values[derived] = _decimal(texts.filter(pa.array(derived)))
    return values


def _decimal(texts: pa.Array[Any]) -> Ints:
    takes = "a LONG key in decimal"
    reject(~bools_of(pc.match_substring_regex(texts, "^-?[0-9]{1,20}$")), takes, texts)
    try:
        return np.asarray(texts.cast(pa.int64()))
    except pa.ArrowInvalid:
        beyond = [text is not None and not _LONG[0] <= int(text) <= _LONG[1] for text in map(plain_value, texts)]
        reject(np.array(beyond), takes, texts)
        raise


def _key_bytes(inputs: InputFields, kinds: Codes) -> Spans | None:
    stored, texts = inputs.array("key_bytes"), inputs.array("key")
    derived = inputs.has("key") & ~inputs.has("key_bytes") & (kinds != layout.LONG_KEY)
    if texts is None or not derived.any():
        return inputs.spans("key_bytes")
    return spans_of(texts if stored is None else pc.coalesce(stored, texts.cast(stored.type)))


# -- the parts


def _parts(inputs: InputFields, is_v2: Bools, kinds: Codes) -> Parts:
    spans = {
        KEY: _key_bytes(inputs, kinds),
        VALUE: inputs.spans("value"),
        METADATA: inputs.spans("metadata"),
        DIGEST: inputs.spans("schema_id"),
        METADATA_DIGEST: inputs.spans("metadata_schema_id"),
        KEY_DIGEST: inputs.spans("key_schema_id"),
    }
    starts, sizes = np.zeros((SPANS, inputs.rows), np.int64), np.full((SPANS, inputs.rows), -1)
    data = [_NO_BYTES] * SPANS
    for k, span in spans.items():
        if span is not None:
            data[k], starts[k], sizes[k] = span
    _reject_digests(inputs, sizes, is_v2)
    _announce(inputs, sizes[VALUE], "schema")
    _announce(inputs, sizes[METADATA], "metadata_schema")
    reject((sizes[METADATA] >= 0) & ~is_v2, "metadata in V2", "some in V1")
    versions = np.zeros((NUMBERS, inputs.rows), np.int64)
    versions[VERSION] = _versions(inputs, "schema_version", is_v2)
    versions[METADATA_VERSION] = _versions(inputs, "metadata_schema_version", is_v2)
    versions[KEY_VERSION] = _versions(inputs, "key_schema_version", is_v2)
    return Parts(tuple(data), starts, sizes, versions)


def _reject_digests(inputs: InputFields, sizes: Ints, is_v2: Bools) -> None:
    names = {DIGEST: "schema_id", METADATA_DIGEST: "metadata_schema_id", KEY_DIGEST: "key_schema_id"}
    for k, name in names.items():
        if inputs.array(name) is not None:
            unknown = (sizes[k] >= 0) & (sizes[k] != layout.MD5_SIZE) & ~(is_v2 & (sizes[k] == layout.CRC32_SIZE))
            reject(unknown, f"{name} of {layout.MD5_SIZE} bytes, or of {layout.CRC32_SIZE} in V2", sizes[k])


def _announce(inputs: InputFields, sizes: Ints, schema: str) -> None:
    """Give empty data to a part that has a schema but no data."""
    sizes[(sizes < 0) & (inputs.has(f"{schema}_id") | inputs.has(f"{schema}_version"))] = 0


def _versions(inputs: InputFields, field: str, is_v2: Bools) -> Ints:
    versions = inputs.numbers(field, *_SHORT)
    low, high = _PART_VERSION
    reject(is_v2 & ((versions < low) | (versions > high)), f"{field} from {low} to {high} in V2", versions)
    return versions


# -- the fixed fields


def _fixed(inputs: InputFields, is_v2: Bools, kinds: Codes, parts: Parts, sizes: Ints) -> tuple[Ints, ...]:
    """The columns of `FIXED`."""
    physical, logical = _partitions(inputs, is_v2)
    columns = {
        "length": sizes,
        "attributes": _attributes(inputs, is_v2, kinds, parts),
        "physical_partition_id": physical,
        "logical_partition_id": logical,
        "timestamp_nanos": _nanos(inputs),
        "src_id": _source_ids(inputs, is_v2),
        "key_long": _long_keys(inputs, kinds),
    }
    stored = (columns[name] if name in columns else _stored(inputs, is_v2, name) for name in FIXED)
    return tuple(read_only(column.view()) for column in stored)


def _stored(inputs: InputFields, is_v2: Bools, name: str) -> Ints:
    """A stored field, unchanged; an error if the event's version cannot hold it."""
    values = inputs.numbers(name, *_LONG)
    for table, rows in ((layout.V1, ~is_v2), (layout.V2, is_v2)):
        placed = table.get(name)
        if not rows.any():
            continue
        if placed is None:
            reject(rows & inputs.has(name), f"no {name} in {table.name}", values)
        else:
            low, high = placed.field.bounds
            if (low, high) != _LONG:
                reject(
                    rows & ((values < low) | (values > high)), f"{name} from {low} to {high} in {table.name}", values
                )
    return values


def _attributes(inputs: InputFields, is_v2: Bools, kinds: Codes, parts: Parts) -> Ints:
    bits, stored = inputs.numbers("attributes", *_BITS), inputs.has("attributes")
    if not stored.all():
        bits = np.where(stored, bits, _derived_attributes(inputs, is_v2, kinds))
    announced = (parts.sizes[METADATA] >= 0) * layout.V2_METADATA
    announced |= (parts.sizes[VALUE] >= 0) * layout.V2_PAYLOAD
    return np.where(is_v2, bits & ~(layout.V2_METADATA | layout.V2_PAYLOAD) | announced, bits)


def _derived_attributes(inputs: InputFields, is_v2: Bools, kinds: Codes) -> Ints:
    # V1's opcode bits and V2's opcode numbers are the same: 1 UPSERT, 2 DELETE.
    opcode = inputs.codes("opcode", layout.OPCODES).astype(np.int64) + 1
    trace, replicated = inputs.flags("is_trace"), inputs.flags("is_replicated")
    v1 = trace * layout.V1_TRACE | replicated * layout.V1_REPLICATED | (kinds == layout.BYTES_KEY) * layout.V1_BYTES_KEY
    v2 = (
        trace * layout.V2_TRACE
        | replicated * layout.V2_REPLICATED
        | (kinds.astype(np.int64) + 1) << layout.V2_KEY_SHIFT
    )
    return opcode | np.where(is_v2, v2, v1)


def _partitions(inputs: InputFields, is_v2: Bools) -> tuple[Ints, Ints]:
    """Physical and logical partition. V2 has one partition id, which stands for both."""
    physical, has_physical = inputs.numbers("physical_partition_id", *_SHORT), inputs.has("physical_partition_id")
    logical, has_logical = inputs.numbers("logical_partition_id", *_SHORT), inputs.has("logical_partition_id")
    two = is_v2 & has_physical & has_logical & (physical != logical)
    reject(two, "one partition id in V2", "a physical and another logical one")
    return np.where(is_v2 & ~has_physical, logical, physical), np.where(is_v2 & ~has_logical, physical, logical)


def _nanos(inputs: InputFields) -> Ints:
    nanos, present = inputs.numbers("timestamp_nanos", *_LONG), inputs.has("timestamp_nanos")
    if present.all():
        return nanos
    micros = inputs.numbers("timestamp", *_LONG)
    first, last = -(-_LONG[0] // 1000), _LONG[1] // 1000  # [us] the range whose nanoseconds fit a BIGINT
    reject(~present & ((micros < first) | (micros > last)), "a timestamp from 1677 to 2262", inputs.array("timestamp"))
    return np.where(present, nanos, micros * 1000)


def _source_ids(inputs: InputFields, is_v2: Bools) -> Ints:
    ids, present = _stored(inputs, is_v2, "src_id"), inputs.has("src_id")
    if present.all():
        return ids
    derived = inputs.codes("event_type", layout.EVENT_TYPES)
    derived[inputs.flags("is_end_of_period")] = layout.EVENT_TYPES.index("END_OF_PERIOD")
    named = np.array([_SOURCE_IDS.get(name, 0) for name in (*layout.EVENT_TYPES, "")], np.int64)[derived]
    vague = ~present & (named == 0) & (inputs.has("event_type") | inputs.has("source_range"))
    reject(vague, "src_id with an event_type or source_range of several ids", "NULL")
    return np.where(present, ids, named)


# -- the fields that a caller passes, as flat arrays; values that an event cannot have are errors


def input_type(declared: pa.DataType) -> pa.StructType:
    """The STRUCT type that a caller may pass. Integers may have any width, because SQL has INT literals."""
    fields = cast("pa.StructType", declared)
    return pa.struct([(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type) for f in fields])


class InputFields:
    """A column of STRUCTs with any of the fields of `input_type`.

    A field that is NULL in all rows counts as missing.
    """

    def __init__(self, column: pa.StructArray) -> None:
        self.rows = len(column)
        self.present = _validity(column)
        self._arrays = {f.name: a for f, a in zip(column.type, column.flatten(), strict=True) if a.null_count < len(a)}
        self._present: dict[str, Bools] = {}
        self._numbers: dict[str, Ints] = {}
        # All missing fields share these two arrays; most fields are missing.
        self._all_false, self._zeros = np.zeros(self.rows, np.bool_), np.zeros(self.rows, np.int64)
        self._all_false.flags.writeable = self._zeros.flags.writeable = False

    def array(self, field: str) -> pa.Array[Any] | None:
        """The field as passed, None if it is missing."""
        return self._arrays.get(field)

    def has(self, field: str) -> Bools:
        """Rows in which the field is not NULL."""
        if field not in self._present:
            array = self.array(field)
            self._present[field] = self._all_false if array is None else _validity(array)
        return self._present[field]

    def numbers(self, field: str, low: int, high: int) -> Ints:
        """A field that must be from ``low`` to ``high``, 0 for NULL; a TIMESTAMP in [us since epoch]."""
        if field not in self._numbers:
            self._numbers[field] = self._int64(field)
        values = self._numbers[field]
        if self.array(field) is None:
            return values
        if values.min() < low or values.max() > high:
            reject((values < low) | (values > high), f"{field} from {low} to {high}", values)
        return values

    def _int64(self, field: str) -> Ints:
        array = self.array(field)
        if array is None:
            return self._zeros
        whole = array if array.type == pa.int64() else array.cast(pa.int64())
        return np.asarray(whole.fill_null(0) if whole.null_count else whole)

    def flags(self, field: str) -> Bools:
        """A BOOLEAN, False for NULL."""
        array = self.array(field)
        return self._all_false if array is None else bools_of(array.fill_null(False))

    def codes(self, field: str, vocabulary: Sequence[str]) -> npt.NDArray[np.int8]:
        """The index of a word in its vocabulary, -1 for NULL."""
        array = self.array(field)
        if array is None:
            return np.full(self.rows, -1, np.int8)
        places = to_codes(array, vocabulary)
        reject((places < 0) & self.has(field), f"{field} {' or '.join(vocabulary)}", array)
        return places

    def spans(self, field: str) -> Spans | None:
        """A field of bytes, None if it is missing."""
        array = self.array(field)
        return None if array is None else spans_of(array)


def _validity(array: pa.Array[Any]) -> Bools:
    return bools_of(array.is_valid()) if array.null_count else np.ones(len(array), np.bool_)


def reject(rows: Bools, takes: str, got: Any) -> None:
    """Raise an error if any of ``rows`` is true. It states what the function takes, and what the first such row has.

    ``got`` is the end of the message, or a column: then the message ends with the row's value.
    """
    if not rows.any():
        return
    value = got if isinstance(got, str) else got[int(rows.argmax())]
    if isinstance(value, pa.Scalar):
        value = plain_value(value)
        value = repr(value) if isinstance(value, str) else value
    raise argument_error(NAME, takes, value)
