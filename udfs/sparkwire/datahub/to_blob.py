"""``to_datahub_blob``: messages out of the fields that ``datahub_change`` answers, or of any of them.

The text is compact, its keys in the order of the source's samples. A field that is NULL is left out, and so is an object
without any; ``schema`` and ``payload`` are always there.

- `op` is written as given; without it `operation` says it, where it means one op: `UPDATE_BEFOR` for UPDATE_BEFORE,
  `MHEARTBEAT` for HEARTBEAT. TRANSACTION and DDL are several, and refused alone.
- A time in milliseconds wins over its TIMESTAMP, which is rounded toward the past.
- `before` and `after` have to be JSON objects and go in as they are. Without them `before_map` and `after_map` say the image: a
  column declared as LONG, DOUBLE, BOOLEAN or DATE has a number, true or false where its text is one, a DATE in ISO 8601
  becomes its milliseconds, everything else is a string.
- `sequence_id` is a string; `error` and `is_valid` are not looked at.
- Strings are escaped as Jackson does it; bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.errors import refusal
from sparkwire.core.column import binary_of, build, empty, plain_value, spans_of, strings
from sparkwire.datahub.documents import (
    ALWAYS,
    COLUMNS,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    DocumentFields,
    DocumentSteps,
    measure_documents,
    measure_quoted,
    program,
    write_documents,
    write_quoted,
)
from sparkwire.datahub.layout import COLUMN, DATE, OPERATIONS, PATHS
from sparkwire.datahub.values import Ranges, documents, last_places, numbered

_NAME: Final = "to_datahub_blob"

# The members of a message in the order of the source's samples.
_KINDS: Final = {
    "columns": COLUMNS, "database": TEXT, "db_type": TEXT, "db_version": TEXT, "schema_name": TEXT, "table": TEXT,
    "primary_key": TEXTS, "op": TEXT, "before_image": JSON, "after_image": JSON, "sequence_id": TEXT, "ddl_text": TEXT,
    "ddl_meta": TEXT, "event_time": NUMBER, "system_time": NUMBER, "checkpoint_time": NUMBER, "version": TEXT,
}  # fmt: skip
_AS_GIVEN: Final = ("database", "db_type", "db_version", "schema_name", "table", "sequence_id", "ddl_text", "version")
"""texts that are written as they are given"""
_BARE: Final = strings(["LONG", "DOUBLE", "BOOLEAN", DATE])
"""types whose values have no quotes"""

_BARE_TEXT: Final = r"\A(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false)\z"
_ISO: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\z"
_TO_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"
_SECONDS_SIZE: Final = len("yyyy-MM-ddTHH:mm:ss")
_SHOWN: Final = 40  # characters of a text that is refused

_SEVERAL: Final = ("TRANSACTION", "DDL")
_OPS: Final = {o.canonical: o.op for o in reversed(OPERATIONS) if o.canonical not in _SEVERAL}
"""the first op of each operation"""


def _program() -> DocumentSteps:
    tree: dict[str, Any] = {}
    for number, field in enumerate(_KINDS):
        *way, last = PATHS[field].split(".")
        node = tree
        for step in way:
            node = node.setdefault(step, {})
        node[last] = number
    return program(tree, dict(enumerate(_KINDS.values())), always=("", "schema", "payload"))


_PROGRAM: Final = _program()


def to_blob(change: pa.Array) -> pa.Array:
    """BINARY: one message a row, ``change`` being a STRUCT of all fields."""
    inputs = dict(zip((field.name for field in change.type), change.flatten(), strict=True))
    written = {name: inputs[name] for name in (*_AS_GIVEN, "primary_key", "columns")}
    written |= {name: _millis(inputs, name) for name, kind in _KINDS.items() if kind == NUMBER}
    written["op"] = pc.coalesce(inputs["op"], _op_of(inputs))
    written["ddl_meta"] = _to_base64(inputs["ddl_meta"])
    for image in ("before", "after"):
        written[f"{image}_image"] = pc.coalesce(_checked(inputs[image], image), _image(inputs, image))
    fields = _fields(written, len(change))
    sizes = empty(len(change), np.int64)
    measure_documents(_PROGRAM, fields, empty(0, np.uint8), sizes)
    return build(sizes, lambda offsets, out: write_documents(_PROGRAM, fields, offsets, out), pa.binary())


def _fields(written: Mapping[str, pa.Array], rows: int) -> DocumentFields:
    present = np.full(rows, ALWAYS, np.int64)
    places = np.zeros((len(_KINDS), rows + 1), np.int64)
    parts, size = [], 0
    for number, (field, kind) in enumerate(_KINDS.items()):
        column = written[field]
        present[np.asarray(column.is_valid())] |= 1 << number
        if kind == NUMBER:
            places[number, :-1] = column.fill_null(0)
        elif kind in (TEXT, JSON):
            source = binary_of(column)
            first, last = int(source.offsets[0]), int(source.offsets[-1])
            np.add(source.offsets, size - first, out=places[number])
            parts.append(source.data[first:last])
            size += last - first
        else:
            places[number] = _ends(column)
    # A kernel can choose among rows of an array, among arrays only at a price.
    data = np.concatenate(parts)
    columns = written["columns"].flatten()
    names, types = (spans_of(texts) for texts in columns.flatten())
    texts = spans_of(written["primary_key"].flatten())
    return DocumentFields(present, data, places, texts, names, types, np.asarray(columns.is_valid()))


def _ends(lists: pa.Array) -> npt.NDArray[np.int32]:
    """Where the rows of ``lists.flatten()`` end, 0 before them."""
    counts = np.asarray(lists.value_lengths().fill_null(0))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _concatenated(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


# -- plain fields


def _op_of(inputs: Mapping[str, pa.Array]) -> pa.Array:
    """The op that ``operation`` means, where no op is given."""
    operation = pc.if_else(inputs["op"].is_null(), inputs["operation"], None)
    place = pc.index_in(operation, pa.array(list(_OPS)))
    unknown = operation.filter(pc.and_(operation.is_valid(), place.is_null()))
    if len(unknown):
        *names, last = sorted(_OPS)
        raise refusal(_NAME, f"operation {', '.join(names)} or {last} without op", repr(plain_value(unknown[0])))
    return pa.array(list(_OPS.values())).take(place)


def _millis(inputs: Mapping[str, pa.Array], field: str) -> pa.Array:
    """[ms since epoch]"""
    moments = inputs[field]
    micros = np.asarray(moments.cast(pa.int64()).fill_null(0))
    return pc.coalesce(inputs[f"{field}_ms"], pa.array(micros // 1000, mask=np.asarray(moments.is_null())))


def _to_base64(column: pa.Array) -> pa.Array:
    # One by one: only DDL messages have such a field, and they are rare.
    texts = [None if data is None else base64.b64encode(data).decode() for data in column.to_pylist()]
    return pa.array(texts, pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    """STRING as JSON strings."""
    source = binary_of(texts)
    sizes = empty(source.rows, np.int64)
    measure_quoted(source.data, source.offsets, empty(0, np.uint8), sizes)
    if source.valid is not None:
        sizes[~source.valid] = -1
    return build(sizes, lambda at, out: write_quoted(source.data, source.offsets, sizes, at, out), pa.string())


# -- images


def _checked(texts: pa.Array, field: str) -> pa.Array:
    """The texts, each proved to be a JSON object."""
    source = binary_of(texts)
    # Any tree does: it is about the proof.
    intact = documents(source.data, source.offsets[:-1], source.offsets[1:], COLUMN).intact
    marked = np.asarray(pc.starts_with(texts, "\ufeff").fill_null(False))
    refused = (~intact | marked) & np.asarray(texts.is_valid())
    if refused.any():
        text = plain_value(texts[int(refused.argmax())])
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        raise refusal(_NAME, f"{field} as the text of a JSON object", repr(shown))
    return texts


def _image(inputs: Mapping[str, pa.Array], image: str) -> pa.Array:
    """The image that a map says, where there is a map and no text."""
    maps = inputs[f"{image}_map"]
    wanted = np.asarray(pc.and_(inputs[image].is_null(), maps.is_valid()))
    if not wanted.any():
        return pa.nulls(len(maps), pa.string())
    rows = pa.array(np.flatnonzero(wanted))
    chosen = maps.take(rows)
    keys, items = chosen.keys, chosen.items.cast(pa.string())
    types = _declared(inputs["columns"].take(rows), chosen)
    members = _concatenated(_quoted(keys), ":", _values(items, types))
    texts = _concatenated("{", pc.binary_join(pa.ListArray.from_arrays(chosen.offsets, members), ","), "}")
    return texts.take(pa.array(np.cumsum(wanted) - 1, mask=~wanted))


def _declared(columns: pa.Array, maps: pa.Array) -> pa.Array:
    """The type that each entry's column is declared with, NULL for none."""
    names, types = columns.flatten().flatten()
    ends, offsets = _ends(columns), np.asarray(maps.offsets)
    (among, asked), count = numbered(names, maps.keys)
    place = last_places(Ranges(ends[:-1], ends[1:], among), Ranges(offsets[:-1], offsets[1:], asked), count)
    return types.take(pa.array(place, mask=place < 0))


def _values(items: pa.Array, types: pa.Array) -> pa.Array:
    """The values of an image out of their texts."""
    bare = pc.and_(pc.is_in(types, _BARE), pc.match_substring_regex(items, _BARE_TEXT))
    plain = pc.if_else(bare.fill_null(False), items, _quoted(items))
    dates = pc.if_else(pc.equal(types, DATE), items, None)
    return pc.coalesce(_date_millis(dates), plain, "null")


def _date_millis(texts: pa.Array) -> pa.Array:
    """STRING: the milliseconds of those that are an instant in ISO 8601, NULL for the others."""
    iso = pc.if_else(pc.match_substring_regex(texts, _ISO), texts, None)
    to_seconds = pc.utf8_slice_codeunits(iso, 0, _SECONDS_SIZE)
    seconds = pc.strptime(to_seconds, _TO_SECONDS, "s", error_is_null=True)
    # The 30th of February parses, but reads back as another day.
    real = pc.equal(pc.strftime(seconds, _TO_SECONDS), to_seconds)
    millis = pc.utf8_slice_codeunits(iso, _SECONDS_SIZE + 1, _SECONDS_SIZE + 4).cast(pa.int64())
    total = pc.add(pc.multiply(seconds.cast(pa.int64()), 1000), millis)
    return pc.if_else(real, total, None).cast(pa.string())
