"""Canal: flat messages of MySQL and MariaDB, ``canal.mq.flatMessage=true``.

    data       [{column: text or null}]: one item for each row, in the order of the statement; of a DELETE the old rows
    old        of an UPDATE one item for each row: the old values of the columns that changed in this row or in an earlier one
    type       INSERT, UPDATE, DELETE; of statements CREATE, ALTER, ERASE, RENAME, TRUNCATE, QUERY, ...
    database, table, pkNames [column], mysqlType {column: declaration}, es [ms since epoch], gtid, sql, ts, id, isDdl

A change of the key is one UPDATE. There is no position in the log; with ``canal.instance.gtidon`` the transaction's id is one. A
TRUNCATE is a statement that changes rows; the other statements are left out.

Sources: Canal 1.1.7, its messages over MariaDB; TiCDC and Apache Flink write the same form.
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
from sparkwire.changes.systems import ROWS, TEXT, Dialect, Fields, System
from sparkwire.core.column import bools_of, text_or_null
from sparkwire.json.grammar import FALSE, TRUE
from sparkwire.json.mysql_types import of_declaration, of_mariadb, of_sql, of_tidb
from sparkwire.json.types import Type
from sparkwire.kernels import Bools

_STATEMENTS: Final = (
    "CREATE",
    "ALTER",
    "ERASE",
    "RENAME",
    "QUERY",
    "CINDEX",
    "DINDEX",
    "GTID",
    "XACOMMIT",
    "XAROLLBACK",
    "TIDB_WATERMARK",
)
_OF_ROWS: Final = ("INSERT", "UPDATE", "DELETE")
_GTID: Final = (
    r"^(?:(?P<domain>[0-9]+)-[0-9]+-(?P<sequence>[0-9]{1,18})|"
    r"(?P<server>[0-9a-fA-F-]{36}):(?:[0-9]+-)?(?P<number>[0-9]{1,18}))$"
)
"""MariaDB's domain, server and sequence; or MySQL's server and number"""
_MARIADB: Final = r"^[0-9]+-[0-9]+-[0-9]+(,[0-9]+-[0-9]+-[0-9]+)*$"
"""GTIDs of MariaDB, one of each domain"""


@text_cache(1024)
def _types(text: str) -> Mapping[str, Type]:
    with suppress(ValueError):
        return {name: of_declaration(type) for name, type in parsed_json(text).items() if isinstance(type, str)}
    return {}


def _positions(fields: Fields) -> pa.Array:
    """The sequence of MariaDB's domain, or the number of MySQL's server."""
    parts = pc.extract_regex(fields.texts("transaction"), _GTID)
    log, number = (
        pc.coalesce(*(text_or_null(pc.struct_field(parts, name)) for name in names))
        for names in (("domain", "server"), ("sequence", "number"))
    )
    return pa.StructArray.from_arrays([log, number.cast(pa.int64())], fields=list(POSITION), mask=number.is_null())


def _is_of_mariadb(fields: Fields) -> Bools:
    """Messages with a GTID of MariaDB. Canal takes the JSON of MariaDB for bytes, and writes a character for each."""
    of_mariadb: Bools = bools_of(pc.match_substring_regex(fields.texts("transaction"), _MARIADB).fill_null(False))
    return of_mariadb


def _contradicts(fields: Fields) -> Bools:
    """Statements with rows, rows that are a statement, and a TRUNCATE that is none."""
    ops, mark = fields.texts("op"), fields.value("is_statement").kinds
    of_rows = bools_of(pc.is_in(ops, pa.array(_OF_ROWS)))
    is_truncate = bools_of(pc.equal(ops, "TRUNCATE").fill_null(False))
    contradicts: Bools = (~of_rows & fields.has_rows) | (of_rows & (mark == TRUE)) | (is_truncate & (mark == FALSE))
    return contradicts & bools_of(pc.is_in(ops, pa.array(list(CANAL.operations))))


POSITION: Final = pa.struct([("log", pa.string()), ("position", pa.int64())])
CANAL: Final = System(
    name="canal",
    title="Canal",
    fields={
        "op": "type",
        "after": "data",
        "before": "old",
        "database": "database",
        "table": "table",
        "keys": "pkNames",
        "time": "es",
        "transaction": "gtid",
        "types": "mysqlType",
        "is_statement": "isDdl",
        "tidb": "_tidb",
    },
    operations={
        "INSERT": INSERT,
        "UPDATE": UPDATE,
        "DELETE": DELETE,
        "TRUNCATE": TRUNCATE,
        **dict.fromkeys(_STATEMENTS),
    },
    marks=({"op": TEXT, "after": ROWS},),
    type_of=of_sql,
    messages="[flat messages](formats/canal.md) of Canal, TiCDC or Flink",
    also_pass="`columns` for a stream",
    example='{"type":"INSERT","database":"d","table":"t","pkNames":["id"],"es":1,"mysqlType":{"id":"int"},"data":[{"id":"1"}]}',
    in_arrays=True,
    delete_in_after=True,
    old_row="changed",
    declared_types=_types,
    dialects=(Dialect(_is_of_mariadb, of_mariadb), Dialect(lambda fields: fields.has("tidb"), of_tidb)),
    contradicts=_contradicts,
    position=POSITION,
    positions=_positions,
    position_remark="it needs gtid",
    parts_after_position=True,
)
