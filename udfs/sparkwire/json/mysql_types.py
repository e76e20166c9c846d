"""MySQL's types: the declaration of a column, and how change messages write its values.

    declared                       SQL type                 values, as text or as JSON
    tinyint ... bigint             TINYINT ... BIGINT       digits; unsigned: the next larger type, DECIMAL(20,0) for bigint
    boolean, bit(n)                TINYINT, BIGINT          digits; bit(64): DECIMAL(20,0)
    decimal(p,s)                   DECIMAL(p,s)             digits; STRING beyond 38 digits
    float, double                  FLOAT, DOUBLE            digits, with an exponent
    char, varchar, text, time      STRING
    enum, set                      STRING, ARRAY<STRING>    the name and an array of names; of Canal index and mask
    binary, varbinary, blob        BINARY                   Base64; of Canal a character for each byte
    json                           STRING                   the JSON; of Canal for MariaDB a character for each byte, which
                                                            only the GTID of a message shows: `of_mariadb`
    date, datetime, timestamp      DATE, TIMESTAMP_NTZ, TIMESTAMP    ``yyyy-MM-dd HH:mm:ss.ffffff``; a timestamp is in UTC
    year                           INT
    geometry                       STRING                   WKT; of Canal BINARY, four bytes of SRID and WKB

A date with a zero year, month or day, such as ``0000-00-00``, is NULL and unexpected.
Canal takes the texts of ``text(1000)``, ``long`` and ``varchar(70000)`` for bytes, too, and writes a character for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import sql_name
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import binary_of, bitmap, bools_of, lists, primitive
from sparkwire.json import plain_texts, values
from sparkwire.json.conversions import instants, split_members
from sparkwire.json.grammar import ARRAY, ESCAPED, NULL, REAL, STRING
from sparkwire.json.numbers import decimals_of, floats_of, long_decimals, without_exponents
from sparkwire.json.types import Type
from sparkwire.json.values import Values

_DECLARED: Final = re.compile(r"\s*(\w+(?: precision)?)\s*(?:\(([^)]*)\))?\s*(.*)", re.DOTALL)
_QUOTED: Final = r"\s*'(?:[^']|'')*'\s*"
_LISTED: Final = re.compile(rf"\s*\w+\s*\(({_QUOTED}(?:,{_QUOTED})*)\)", re.DOTALL)
_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
"""Canal doubles a quote in a declaration; a backslash is a character like any other"""
_TEXTS: Final = ("text", "tinytext", "mediumtext", "longtext")
_LONG_TEXTS: Final = ("long", "clob", "long varchar")
_LONGEST_VARCHAR: Final = 65535
_FLOAT_BITS: Final = 24
"""of FLOAT(p); with more bits it is a DOUBLE"""
_INTEGERS: Final = {
    "tinyint": 0,
    "boolean": 0,
    "bool": 0,
    "int1": 0,
    "smallint": 1,
    "int2": 1,
    "mediumint": 2,
    "int3": 2,
    "middleint": 2,
    "int": 2,
    "integer": 2,
    "int4": 2,
    "bigint": 3,
    "int8": 3,
    "serial": 3,
}
_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")
_UNSIGNED: Final = {"mediumint", "int3", "middleint"}
"""types whose unsigned values fit the same type"""
_DECIMALS: Final = ("decimal", "numeric", "dec", "fixed")
_OTHERS: Final = {
    "float": "float",
    "float4": "float",
    "double": "double",
    "double precision": "double",
    "real": "double",
    "float8": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "year",
    "enum": "enum",
    "set": "set",
}
_BINARIES: Final = (
    *("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "long varbinary"),
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
)
_SQL: Final = {
    **{
        name: name
        for name in ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary", "date")
    },
    "integer": "int",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "array<string>": "set",
    "json": "json",
}
KNOWN: Final = ", ".join((*(name.upper() for name in _SQL), "DECIMAL(p,s)"))
_OF_TEXTS: Final = ("binary", "binary_latin1", "binary_hex")
"""types whose values are texts only"""
_NIBBLES: Final = np.zeros(256, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)] = [*range(16), *range(10, 16)]
"""the value of each hexadecimal digit"""
_MASK: Final = re.compile("[0-9]{1,20}")
_WIDTH: Final = re.compile("[0-9]{1,4}")
_JSON: Final = r"^(\s*([\[{\"0-9-]|(true|false|null)\b)|$)"
"""how JSON begins; an empty text stays"""
_DECIMAL_TEXT: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def of_sql(text: str) -> Type:
    """The type of a column that the user gives as a SQL type. Raises ValueError if MySQL's values have no such type."""
    word = re.sub(r"\s+", "", text.lower())
    if word in _SQL:
        return Type("text", _SQL[word])
    decimal = _DECIMAL_TEXT.fullmatch(word)
    if decimal:
        return Type("text", "decimal", (int(decimal[1]), int(decimal[2])))
    raise value_error(f"{text!r} is no type of a column: use one of {KNOWN}")


@text_cache(4096)
def of_declaration(text: str) -> Type:
    """The type of a column as MySQL declares it, with the values of Canal: ``int(10) unsigned``, ``enum('a','b')``."""
    match = _DECLARED.match(text.lower())
    name, inside = (match[1], match[2] or "") if match else ("", "")
    is_unsigned = match is not None and re.search(r"\b(unsigned|zerofill)\b", match[3]) is not None
    if name in _INTEGERS:
        return Type("text", _WIDTHS[_INTEGERS[name]]) if not is_unsigned else _unsigned(name)
    if name == "bit":
        return _bits(int(inside) if _WIDTH.fullmatch(inside) else 1)
    if name in _DECIMALS:
        return _decimal(inside)
    if name in ("enum", "set"):
        listed = _LISTED.match(text)
        members = [] if listed is None else [member.replace("''", "'") for member in _MEMBER.findall(listed[1])]
        return Type("text", name, names=tuple(members))
    if name in _BINARIES:
        return Type("text", "binary_latin1")
    if name == "float" and _WIDTH.fullmatch(inside.strip()) and int(inside) > _FLOAT_BITS:
        return Type("text", "double")
    if name == "json":
        return Type("text", "json_text")
    if _is_read_as_bytes(name, inside):
        return Type("text", "text_latin1")
    return Type("text", _OTHERS.get(name, "string"))


def of_mariadb(declared: Type) -> Type:
    """The type of a column that Canal declares for MariaDB, whose JSON it takes for bytes."""
    return Type("text", "text_latin1") if declared.logical == "json_text" else declared


def of_tidb(declared: Type) -> Type:
    """The type of a column that TiCDC declares. It writes names of an enum and a set, which may be digits."""
    return declared._replace(logical=f"{declared.logical}_by_name") if declared.logical in ("enum", "set") else declared


def _is_read_as_bytes(name: str, inside: str) -> bool:
    """Whether Canal takes a text for bytes, because its declaration is none of the four names that Canal knows."""
    is_long_varchar = name == "varchar" and inside.isdecimal() and int(inside[:9]) > _LONGEST_VARCHAR
    return name in _LONG_TEXTS or (name in _TEXTS and inside != "") or is_long_varchar


def _decimal(inside: str) -> Type:
    """The type with these arguments; a STRING if there are none, because TiCDC leaves out all arguments."""
    numbers = [int(text) for text in map(str.strip, inside.split(",")) if _WIDTH.fullmatch(text)]
    precision, scale = (*numbers, 0)[:2] if numbers else (0, 0)
    precision = precision or (10 if numbers else 0)
    return Type("text", "decimal", (precision, scale)) if scale <= precision != 0 else Type("text", "string")


def of_maxwell(column: Mapping[str, Any]) -> str:
    """The SQL type of a column in Maxwell's ``def``, which has no precision."""
    type = str(column.get("type", ""))
    if type in _DECIMALS or type in _BINARIES[7:]:
        return "STRING"  # a decimal of any number of digits; WKT
    if type == "bit":
        width = column.get("column-length")
        return sql_name(_bits(width if isinstance(width, int) else 64).arrow)
    if type == "json":
        return "JSON"
    declared = of_declaration(type if column.get("signed", True) else f"{type} unsigned")
    return sql_name(declared.arrow)


def _unsigned(name: str) -> Type:
    if name in _UNSIGNED:
        return Type("text", "int")
    width = _INTEGERS[name] + 1
    return Type("text", _WIDTHS[width]) if width < len(_WIDTHS) else Type("text", "decimal", (20, 0))


def _bits(width: int) -> Type:
    return Type("text", "bigint") if width < 64 else Type("text", "decimal", (20, 0))


# ---------------------------------------------------------------- values


def read_texts(items: Values, type: Type) -> pa.Array:
    """A column of the type's SQL type; NULL if a value does not fit."""
    if type.logical in ("set", "set_by_name") and not type.names:
        return _arrays(items)
    if type.logical == "json":
        return pc.if_else(pa.array(items.kinds > NULL), values.canonical_texts(items), None)
    if type.logical in _OF_TEXTS:
        items = items.only((items.kinds == STRING) | (items.kinds == ESCAPED))
    texts = values.texts(items)
    if type.logical == "string" and (items.kinds == REAL).any():
        texts = pc.if_else(primitive(items.kinds == REAL, type=pa.bool_()), without_exponents(texts), texts)
    return _READERS[type.logical](texts, type)


def _integers(texts: pa.Array, type: Type) -> pa.Array:
    return plain_texts.integers(texts, type.arrow)


def _years(texts: pa.Array, type: Type) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(texts, "^[0-9]{1,4}$"), texts, None).cast(type.arrow)


def _decimals(texts: pa.Array, type: Type) -> pa.Array:
    return decimals_of(texts, type.arrow) if pa.types.is_decimal(type.arrow) else long_decimals(texts, *type.arguments)


def _floats(texts: pa.Array, type: Type) -> pa.Array:
    plain = pc.match_substring_regex(texts, r"^(-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$")
    return floats_of(pc.if_else(plain, texts, None), type.arrow)


def _booleans(texts: pa.Array, _: Type) -> pa.Array:
    isin = [pc.is_in(texts, pa.array(words)) for words in (("1", "true"), ("0", "false"))]
    return pc.case_when(pc.make_struct(*isin), pa.scalar(True), pa.scalar(False))


def _strings(texts: pa.Array, _: Type) -> pa.Array:
    return texts


def _json_texts(texts: pa.Array, _: Type) -> pa.Array:
    """JSON; NULL for the expression that Canal writes of a partial update: ``JSON_REPLACE(doc, '$.a', 1)``."""
    return pc.if_else(pc.match_substring_regex(texts, _JSON), texts, None)


def _dates(texts: pa.Array, _: Type) -> pa.Array:
    return plain_texts.dates(texts)


def _local_times(texts: pa.Array, _: Type) -> pa.Array:
    return plain_texts.local_times(texts)


def _local_times_with_z(texts: pa.Array, _: Type) -> pa.Array:
    return plain_texts.local_times(pc.replace_substring_regex(texts, "Z$", ""))


def _instants(texts: pa.Array, _: Type) -> pa.Array:
    return instants(texts)


def _base64(texts: pa.Array, _: Type) -> pa.Array:
    return values.from_base64(texts, padded=True)


def _latin1(texts: pa.Array, _: Type) -> pa.Array:
    """A byte for each character; NULL if a character is not a byte."""
    if not len(texts) or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts.cast(pa.binary())
    return pa.array([_bytes_or_none(text) for text in texts.to_pylist()], pa.binary())


def _from_hex(texts: pa.Array, _: Type) -> pa.Array:
    """The bytes of hexadecimal digits, with or without ``0x``; NULL for other texts."""
    plain = pc.match_substring_regex(texts, "^(0x)?([0-9a-fA-F]{2})*$")
    digits = binary_of(pc.replace_substring_regex(pc.if_else(plain, texts, None), "^0x", ""))
    nibbles = _NIBBLES[digits.data[int(digits.offsets[0]) : int(digits.offsets[-1])]]
    ends = ((digits.offsets - digits.offsets[0]) // 2).astype(np.int32)
    buffers = [bitmap(digits.valid), pa.py_buffer(ends), pa.py_buffer(nibbles[::2] << 4 | nibbles[1::2])]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers)


def _bytes_or_none(text: str | None) -> bytes | None:
    return None if text is None or max(text, default="") > "\xff" else text.encode("latin-1")


def _latin1_text(texts: pa.Array, _: Type) -> pa.Array:
    """Text whose bytes were read as characters. Text that cannot have come about like this stays."""
    if not len(texts) or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    return pa.array([_mended(text) for text in texts.to_pylist()], pa.string())


def _mended(text: str | None) -> str | None:
    data = _bytes_or_none(text)
    try:
        return text if data is None else data.decode()
    except UnicodeDecodeError:
        return text


def _names(texts: pa.Array, type: Type) -> pa.Array:
    """The name of an enum's value, from its index or its name. Index 0 is the empty text of an invalid value."""
    if not type.names:
        return _without_numbers(texts)
    names = ["", *type.names]
    index = {str(k): name for k, name in enumerate(names)}
    if type.logical == "enum_by_name":
        index |= {name: name for name in names}
    encoded = texts.dictionary_encode()
    named = [index.get(text, text if text in names else None) for text in encoded.dictionary.to_pylist()]
    return pa.array(named, pa.string()).take(encoded.indices)


def _without_numbers(texts: pa.Array) -> pa.Array:
    """The texts; NULL for an index or a mask, because the type does not have its names."""
    return pc.if_else(pc.match_substring_regex(texts, "^[0-9]+$"), None, texts)


def _members(texts: pa.Array, type: Type) -> pa.Array:
    """The names in a set, from its mask or its names."""
    encoded = texts.dictionary_encode()
    return pa.array([_of_mask(text, type) for text in encoded.dictionary.to_pylist()], type.arrow).take(encoded.indices)


def _of_mask(text: str, type: Type) -> list[str] | None:
    names = type.names
    members = text.split(",") if text else []
    if type.logical == "set_by_name" and set(members) <= set(names):
        return members
    if _MASK.fullmatch(text) and int(text) < 1 << len(names):
        return [name for k, name in enumerate(names) if int(text) >> k & 1]
    return members if set(members) <= set(names) else None


def _arrays(items: Values) -> pa.Array:
    """ARRAY<STRING> from arrays of texts, or from texts with commas."""
    listed = values.items(items)
    members = values.texts(listed.together())
    counts = np.diff(listed.firsts)
    is_alone = np.repeat(counts == 1, counts)  # a bootstrap of Maxwell writes an empty set as [""]
    named = ~(is_alone & bools_of(pc.equal(members, "").fill_null(False)))
    firsts = np.concatenate(([0], np.cumsum(named)))[listed.firsts].astype(np.int32)
    is_text = np.isin(listed.together().kinds, (STRING, ESCAPED))
    others = np.concatenate(([0], np.cumsum(~is_text)))[listed.firsts]
    has_texts = (items.kinds == ARRAY) & (others[1:] == others[:-1])
    from_arrays = lists(firsts, members.filter(primitive(named, type=pa.bool_())), has_texts)
    texts = _without_numbers(values.texts(items.only((items.kinds == STRING) | (items.kinds == ESCAPED))))
    return pc.if_else(primitive(items.kinds == ARRAY, type=pa.bool_()), from_arrays, split_members(texts))


_READERS: Final[dict[str, Callable[[pa.Array, Type], pa.Array]]] = {
    **dict.fromkeys(_WIDTHS, _integers),
    "year": _years,
    "decimal": _decimals,
    "float": _floats,
    "double": _floats,
    "boolean": _booleans,
    "string": _strings,
    "json_text": _json_texts,
    "text_latin1": _latin1_text,
    "binary": _base64,
    "binary_latin1": _latin1,
    "binary_hex": _from_hex,
    "date": _dates,
    "timestamp_ntz": _local_times,
    "timestamp_ntz_z": _local_times_with_z,
    "timestamp": _instants,
    "enum": _names,
    "set": _members,
    "enum_by_name": _names,
    "set_by_name": _members,
}
