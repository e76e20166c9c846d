"""``to_datahub_blob``: encode messages from any of the fields that ``datahub_change`` returns.

The JSON is compact, with keys in the order of the source's samples. It omits NULL fields and empty objects, but always has
``schema`` and ``payload``.

- It writes `op` as given. If `op` is NULL, it derives it from `operation`: `UPDATE_BEFOR` for UPDATE_BEFORE, `MHEARTBEAT` for
  HEARTBEAT. TRANSACTION and DDL each stand for several ops, so they are an error without `op`.
- A time in milliseconds takes precedence over its TIMESTAMP. It rounds a TIMESTAMP down.
- `before` and `after` must be JSON objects, which it inserts unchanged. If one is NULL, `before_map` or `after_map` is the
  image. A column declared as LONG, DOUBLE, BOOLEAN or DATE becomes a number, true or false if its text is one. A DATE in
  ISO 8601 becomes its milliseconds. Any other value is a string.
- `sequence_id` is a string. `error` and `is_valid` have no effect.
- It escapes strings as Jackson does. Bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import binary_of, plain_value, strings
from sparkwire.datahub.layout import COLUMN, DATE, OPERATIONS, PATHS
from sparkwire.json.columns import NULL, array_of, item_offsets, joined, object_of, string_of
from sparkwire.json.values import Ranges, documents, last_places, numbered

_NAME: Final = "to_datahub_blob"

# The members of a message in the order of the source's samples.
_MEMBERS: Final = (
    *("columns", "database", "db_type", "db_version", "schema_name", "table", "primary_key", "op", "before_image"),
    *("after_image", "sequence_id", "ddl_text", "ddl_meta", "event_time", "system_time", "checkpoint_time", "version"),
)
_TIMES: Final = ("event_time", "system_time", "checkpoint_time")
_ALWAYS: Final = ("", "schema", "payload")
"""objects that the message always has, even if empty"""
Tree: TypeAlias = "dict[str, Tree | str]"
"""members by key; a member is an object or the name of a field"""
_AS_GIVEN: Final = ("database", "db_type", "db_version", "schema_name", "table", "sequence_id", "ddl_text", "version")
"""text fields that it writes unchanged"""
_BARE: Final = strings(["LONG", "DOUBLE", "BOOLEAN", DATE])
"""types whose values have no quotes"""

_BARE_TEXT: Final = r"\A(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false)\z"
_ISO: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\z"
_TO_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"
_SECONDS_SIZE: Final = len("yyyy-MM-ddTHH:mm:ss")
_SHOWN: Final = 40  # characters of a rejected text in the error message

_SEVERAL: Final = ("TRANSACTION", "DDL")
_OPS: Final = {o.canonical: o.op for o in reversed(OPERATIONS) if o.canonical not in _SEVERAL}
"""the first op of each operation"""


def _tree() -> Tree:
    tree: Tree = {}
    for field in _MEMBERS:
        *way, last = PATHS[field].split(".")
        node: Any = tree
        for step in way:
            node = node.setdefault(step, {})
        node[last] = field
    return tree


_TREE: Final = _tree()


def to_blob(change: pa.Array) -> pa.Array:
    """BINARY: one message for each row of ``change``, a STRUCT of all fields."""
    inputs = dict(zip((field.name for field in change.type), change.flatten(), strict=True))
    texts = {name: string_of(inputs[name]) for name in _AS_GIVEN}
    texts |= {name: _millis(inputs, name).cast(pa.string()) for name in _TIMES}
    texts["op"] = string_of(pc.coalesce(inputs["op"], _op_of(inputs)))
    texts["ddl_meta"] = string_of(_to_base64(inputs["ddl_meta"]))
    texts["primary_key"] = array_of(inputs["primary_key"], string_of(inputs["primary_key"].flatten()))
    texts["columns"] = array_of(inputs["columns"], _columns(inputs["columns"].flatten()))
    for image in ("before", "after"):
        texts[f"{image}_image"] = pc.coalesce(_checked(inputs[image], image), _image(inputs, image))
    return _object("", _TREE, texts, len(change)).cast(pa.binary())


def _object(key: str, tree: Tree, texts: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """The object under a key; NULL if it is empty and not in ``_ALWAYS``."""
    members = {
        name: texts[node] if isinstance(node, str) else _object(name, node, texts, rows) for name, node in tree.items()
    }
    result = object_of(members, rows)
    if key in _ALWAYS or not all(member.null_count for member in members.values()):
        return result
    return pc.if_else(pc.equal(result, "{}"), None, result)


def _columns(columns: pa.Array) -> pa.Array:
    """JSON objects with name, type, both or neither."""
    objects = object_of(dict(zip(("name", "type"), map(string_of, columns.flatten()), strict=True)), len(columns))
    return pc.if_else(columns.is_valid(), objects, None)


# -- plain fields


def _op_of(inputs: Mapping[str, pa.Array]) -> pa.Array:
    """The op derived from ``operation``, in rows without an op."""
    operation = pc.if_else(inputs["op"].is_null(), inputs["operation"], None)
    place = pc.index_in(operation, pa.array(list(_OPS)))
    unknown = operation.filter(pc.and_(operation.is_valid(), place.is_null()))
    if len(unknown):
        *names, last = sorted(_OPS)
        raise argument_error(_NAME, f"operation {', '.join(names)} or {last} without op", repr(plain_value(unknown[0])))
    return pa.array(list(_OPS.values())).take(place)


def _millis(inputs: Mapping[str, pa.Array], field: str) -> pa.Array:
    """[ms since epoch]"""
    moments = inputs[field]
    micros = np.asarray(moments.cast(pa.int64()).fill_null(0))
    return pc.coalesce(inputs[f"{field}_ms"], pa.array(micros // 1000, mask=np.asarray(moments.is_null())))


def _to_base64(column: pa.Array) -> pa.Array:
    # A loop in Python: only DDL messages have this field, and they are rare.
    texts = [None if data is None else base64.b64encode(data).decode() for data in column.to_pylist()]
    return pa.array(texts, pa.string())


# -- images


def _checked(texts: pa.Array, field: str) -> pa.Array:
    """The texts, after a check that each is a JSON object."""
    source = binary_of(texts)
    # Any paths will do: only the validity matters.
    intact = documents(source.data, source.offsets[:-1], source.offsets[1:], COLUMN).intact
    marked = np.asarray(pc.starts_with(texts, "\ufeff").fill_null(False))
    invalid = (~intact | marked) & np.asarray(texts.is_valid())
    if invalid.any():
        text = plain_value(texts[int(invalid.argmax())])
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        raise argument_error(_NAME, f"{field} as the text of a JSON object", repr(shown))
    return texts


def _image(inputs: Mapping[str, pa.Array], image: str) -> pa.Array:
    """The image from its map, in rows that have a map and no text."""
    maps = inputs[f"{image}_map"]
    needed = np.asarray(pc.and_(inputs[image].is_null(), maps.is_valid()))
    if not needed.any():
        return pa.nulls(len(maps), pa.string())
    rows = pa.array(np.flatnonzero(needed))
    chosen = maps.take(rows)
    keys, items = chosen.keys, chosen.items.cast(pa.string())
    types = _declared(inputs["columns"].take(rows), chosen)
    members = joined(string_of(keys), ":", _values(items, types))
    texts = joined("{", pc.binary_join(pa.ListArray.from_arrays(chosen.offsets, members), ","), "}")
    return texts.take(pa.array(np.cumsum(needed) - 1, mask=~needed))


def _declared(columns: pa.Array, maps: pa.Array) -> pa.Array:
    """The declared type of each map entry's column, NULL if it is not declared."""
    names, types = columns.flatten().flatten()
    ends, offsets = item_offsets(columns), np.asarray(maps.offsets)
    (among, searched), count = numbered(names, maps.keys)
    place = last_places(Ranges(ends[:-1], ends[1:], among), Ranges(offsets[:-1], offsets[1:], searched), count)
    return types.take(pa.array(place, mask=place < 0))


def _values(items: pa.Array, types: pa.Array) -> pa.Array:
    """The JSON values of an image from their texts."""
    bare = pc.and_(pc.is_in(types, _BARE), pc.match_substring_regex(items, _BARE_TEXT))
    plain = pc.if_else(bare.fill_null(False), items, string_of(items))
    dates = pc.if_else(pc.equal(types, DATE), items, None)
    return pc.coalesce(_date_millis(dates), plain, NULL)


def _date_millis(texts: pa.Array) -> pa.Array:
    """STRING: the milliseconds of an instant in ISO 8601, NULL for any other text."""
    iso = pc.if_else(pc.match_substring_regex(texts, _ISO), texts, None)
    to_seconds = pc.utf8_slice_codeunits(iso, 0, _SECONDS_SIZE)
    seconds = pc.strptime(to_seconds, _TO_SECONDS, "s", error_is_null=True)
    # February 30 parses, but as another day, so it does not format to the same text.
    real = pc.equal(pc.strftime(seconds, _TO_SECONDS), to_seconds)
    millis = pc.utf8_slice_codeunits(iso, _SECONDS_SIZE + 1, _SECONDS_SIZE + 4).cast(pa.int64())
    total = pc.add(pc.multiply(seconds.cast(pa.int64()), 1000), millis)
    return pc.if_else(real, total, None).cast(pa.string())
