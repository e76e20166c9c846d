"""Convert between SQL type names and Spark's Arrow types, and write texts as SQL literals."""

from __future__ import annotations

import re

import pyarrow as pa

from sparkwire.base.printable import value_error

TIMESTAMP = pa.timestamp("us", tz="UTC")

_PRIMITIVES: dict[str, pa.DataType] = {
    "BINARY": pa.binary(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "VOID": pa.null(),
}
_NAMES = {arrow: sql for sql, arrow in _PRIMITIVES.items()} | {pa.large_binary(): "BINARY", pa.large_string(): "STRING"}
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*|[<>,])")


def sql_string(text: str) -> str:
    """A text as a SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def raised(message: str) -> str:
    """SQL that fails the query with a message, which is SQL of a text. Characters that could change a screen become U+FFFD."""
    harmful = sql_string(r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]")
    return f"raise_error(regexp_replace({message}, {harmful}, '\ufffd'))"


def arrow_type(sql: str) -> pa.DataType:
    """The Arrow type of a SQL type such as ``ARRAY<STRUCT<position INT, event BINARY>>``.

    Raises ValueError if the text is not a type that this package exchanges with Spark.
    """
    tokens = _tokens(sql)
    parsed, rest = _parse(tokens, sql)
    if rest:
        raise value_error(f"{sql!r} continues after the type: {' '.join(rest)}")
    return parsed


def sql_name(arrow: pa.DataType) -> str:
    """The SQL name of an Arrow type, as error messages and the reference print it."""
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"ARRAY<{sql_name(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return f"STRUCT<{', '.join(f'{field.name} {sql_name(field.type)}' for field in arrow)}>"
    if pa.types.is_map(arrow):
        return f"MAP<{sql_name(arrow.key_type)}, {sql_name(arrow.item_type)}>"
    if pa.types.is_timestamp(arrow):
        return "TIMESTAMP" if arrow.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision}, {arrow.scale})"
    return _NAMES.get(arrow, str(arrow).upper())


def _tokens(sql: str) -> list[str]:
    tokens, position = [], 0
    while position < len(sql.rstrip()):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise value_error(f"{sql!r} is not a SQL type: unexpected text at position {position}")
        tokens.append(match[1])
        position = match.end()
    return tokens


def _parse(tokens: list[str], sql: str) -> tuple[pa.DataType, list[str]]:
    if not tokens:
        raise ValueError(f"{sql!r} is not a SQL type: it ends where a type should be")
    head, rest = tokens[0].upper(), tokens[1:]
    if head == "ARRAY":
        item, rest = _parse(_skip(rest, "<", sql), sql)
        return pa.list_(item), _skip(rest, ">", sql)
    if head == "MAP":
        key, rest = _parse(_skip(rest, "<", sql), sql)
        item, rest = _parse(_skip(rest, ",", sql), sql)
        return pa.map_(key, item), _skip(rest, ">", sql)
    if head == "STRUCT":
        return _parse_struct(_skip(rest, "<", sql), sql)
    if head not in _PRIMITIVES:
        raise value_error(f"{sql!r} is not a SQL type: {tokens[0]} is unknown")
    return _PRIMITIVES[head], rest


def _parse_struct(tokens: list[str], sql: str) -> tuple[pa.DataType, list[str]]:
    fields: list[pa.Field] = []
    while True:
        name, tokens = tokens[0], tokens[1:]
        kind, tokens = _parse(tokens, sql)
        fields.append(pa.field(name, kind))
        if tokens and tokens[0] == ",":
            tokens = tokens[1:]
            continue
        return pa.struct(fields), _skip(tokens, ">", sql)


def _skip(tokens: list[str], expected: str, sql: str) -> list[str]:
    if not tokens or tokens[0] != expected:
        raise ValueError(f"{sql!r} is not a SQL type: {expected!r} is missing")
    return tokens[1:]
