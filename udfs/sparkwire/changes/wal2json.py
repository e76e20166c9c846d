"""wal2json: PostgreSQL's output plugin for JSON, with its option ``format-version`` 2.

    action     I, U, D, T; of transactions B, C; of logical messages M
    schema, table
    columns    [{name, type, value}]: the new row; a large value that did not change is absent
    identity   [{name, type, value}]: the old values of the replica identity: of the key, or with FULL of all columns
    pk         [{name, type}]: the key, with ``include-pk``
    lsn        ``0/1560368``: the position, with ``include-lsn``; xid, timestamp, with their options

A change of the key is one U, whose ``identity`` has the old key. A TRUNCATE of several tables is a message for each of them.

The order in the source is the lsn: of two changes of a row, the later one has the greater lsn.

Sources: wal2json 2.5, its messages over PostgreSQL 15, and its README.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.json_text import parsed_json
from sparkwire.base.text_cache import text_cache
from sparkwire.changes.columns import DELETE, INSERT, TRUNCATE, UPDATE
from sparkwire.changes.systems import TEXT, Fields, System
from sparkwire.json.grammar import ARRAY
from sparkwire.json.images import Item
from sparkwire.json.postgres_types import of_hex_sql, of_postgres
from sparkwire.json.types import Type

_LSN: Final = r"^[0-7]?[0-9A-F]{1,7}/[0-9A-F]{1,8}$"
"""two numbers of 32 bits; the greatest position of a BIGINT is 7FFFFFFF/FFFFFFFF"""


@text_cache(1024)
def _types(text: str) -> Mapping[str, Type]:
    with suppress(ValueError):
        return {name: of_postgres(type) for name, type in parsed_json(text).items() if isinstance(type, str)}
    return {}


def _positions(fields: Fields) -> pa.Array:
    """The lsn as a number."""
    texts = fields.texts("lsn")
    plain = pc.if_else(pc.match_substring_regex(texts, _LSN), texts, None)
    numbers = pa.array([None if text is None else _number(text) for text in plain.to_pylist()], pa.int64())
    return pa.StructArray.from_arrays([numbers], fields=list(POSITION), mask=numbers.is_null())


def _number(lsn: str) -> int:
    high, _, low = lsn.partition("/")
    return int(high, 16) << 32 | int(low, 16)


POSITION: Final = pa.struct([("position", pa.int64())])
WAL2JSON: Final = System(
    name="wal2json",
    title="wal2json",
    fields={
        "op": "action",
        "after": "columns",
        "before": "identity",
        "schema": "schema",
        "table": "table",
        "keys": "pk",
        "time": "timestamp",
        "transaction": "xid",
        "lsn": "lsn",
    },
    operations={"I": INSERT, "U": UPDATE, "D": DELETE, "T": TRUNCATE, **dict.fromkeys(("B", "C", "M"))},
    marks=({"op": TEXT},),
    certain_marks=(
        {"op": TEXT, "after": (ARRAY,)},
        {"op": TEXT, "before": (ARRAY,)},
        {"op": TEXT, "schema": TEXT, "table": TEXT},
        {"op": TEXT, "lsn": TEXT},
    ),
    type_of=of_hex_sql,
    messages="[messages](formats/wal2json.md) of PostgreSQL's plugin wal2json, format version 2",
    also_pass="`columns` for a stream; `keys`, unless the messages have `pk`",
    example=(
        '{"action":"I","xid":1,"timestamp":"2024-01-31 01:02:03.5+00","lsn":"0/1560368","schema":"d","table":"t",'
        '"columns":[{"name":"id","type":"integer","value":1}],"pk":[{"name":"id","type":"integer"}]}'
    ),
    time_unit="text",
    item=Item(),
    old_row="key",
    before_has_key=True,
    unchanged_in_before=True,
    declared_types=_types,
    position=POSITION,
    positions=_positions,
    position_remark="the lsn, with `include-lsn`",
)
