"""A set of schemas with their keys: fingerprints of their texts, versions, ids of a registry, or any other key."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.schema import NAMED, PRIMITIVES, Schema, full_name, loaded, parse
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.printable import value_error
from sparkwire.errors import SchemaError, needing_the_extra

UNKNOWN_SCHEMA: Final = "UNKNOWN_SCHEMA"
"""the `_error_` of a row whose schema the registry does not have"""

_NUMBERED: Final = re.compile(r"(?:.*\.)?(\d+)\.avsc")
"""a file name with an id or a version"""
_MD5_SIZE: Final = 16  # [bytes]
_OVERLAID: Final = bytes(_MD5_SIZE - 2)
"""REPL_DBUS stores a version in the first two bytes of the fingerprint field"""

SchemaCollection = str | Path | Iterable[Any] | Mapping[Any, Any]


class Schemas(NamedTuple):
    """Schemas in the order in which they were passed. Of two schemas with the same name, the second is the later version."""

    texts: tuple[str, ...]
    """the schemas as Avro's Java writes them"""
    keys: Mapping[Hashable, int]
    """the index in ``texts`` by fingerprint, version or another key"""
    unreadable: Mapping[Hashable, str] = MappingProxyType({})
    """the errors of schemas that cannot be read, by key"""

    def with_more(self, more: Schemas) -> Schemas:
        """These schemas, followed by ``more``."""
        keys = {key: k + len(self.texts) for key, k in more.keys.items()}
        unreadable = {**self.unreadable, **more.unreadable}
        return Schemas((*self.texts, *more.texts), {**self.keys, **keys}, unreadable)

    def why_unknown(self, ids: pa.Array) -> pa.Array:
        """STRING: the error of each row, if its id is unknown."""
        encoded = pc.dictionary_encode(ids)
        unread = pa.array([key in self.unreadable for key in encoded.dictionary.to_pylist()], pa.bool_())
        return pc.if_else(unread.take(encoded.indices).fill_null(False), ERRORS[BAD_FIELD], UNKNOWN_SCHEMA)

    def chosen(self, ids: pa.Array) -> NDArray[np.int32]:
        """The index of each row's schema, by its id; -1 if the id is unknown."""
        encoded = pc.dictionary_encode(ids)
        indexes = [self.keys.get(key, self._overlaid(key)) for key in encoded.dictionary.to_pylist()]
        numbers = np.array([*indexes, -1], np.int32)
        return numbers[np.asarray(encoded.indices.fill_null(len(indexes)), np.int64)]

    def _overlaid(self, key: Any) -> int:
        if isinstance(key, bytes) and len(key) == _MD5_SIZE and key[2:] == _OVERLAID:
            return self.keys.get(int.from_bytes(key[:2], "big", signed=True), -1)
        return -1

    def parsed(self) -> list[Schema]:
        """The parsed schemas."""
        return [parse(text) for text in self.texts]


def schemas_of(schemas: SchemaCollection) -> Schemas:
    """Read schemas from a folder of ``.avsc`` files, a list of schemas, or a mapping from ids to schemas.

    In a folder, a file ``<id>.avsc`` or ``<name>.<version>.avsc`` gives its schema a number. The number is a key if it is
    unique. The fingerprints of the text as passed, and of the text as Avro's Java writes it, are also keys.

    Raises SchemaError, which names the schema, if one is invalid; ValueError if there are no schemas; TypeError for other types.
    """
    if not isinstance(schemas, Iterable | Path):
        raise TypeError(
            "schemas is a Registry, a folder of .avsc files, a list of schemas or a mapping from ids to schemas, got "
            f"{type(schemas).__name__}: {schemas!r}"
        )
    if isinstance(schemas, Mapping):
        result = Schemas(
            java_texts((f"the schema {key!r}", schema) for key, schema in schemas.items()), ids_of(schemas)
        )
    else:
        result = _by_digest(_files(Path(schemas)) if isinstance(schemas, str | Path) else _listed(schemas))
    if not result.texts:
        raise ValueError(f"no Avro schemas found in {schemas!r}")
    return result


def ids_of(schemas: Iterable[Any]) -> dict[Hashable, int]:
    """The index of each schema by its key. A number and its text are the same key, because JSON keys are texts."""
    keys: dict[Hashable, int] = {key: k for k, key in enumerate(schemas)}
    for key, k in list(keys.items()):
        if isinstance(key, str) and key.isascii() and key.isdigit():
            keys.setdefault(int(key), k)
        elif isinstance(key, int):
            keys.setdefault(str(key), k)
    return keys


class _Passed(NamedTuple):
    """A schema as the caller passed it."""

    where: str
    """its name in an error message"""
    schema: Any
    version: int | None = None


def _listed(schemas: Iterable[Any]) -> list[_Passed]:
    return [_Passed(f"schema {k}", schema) for k, schema in enumerate(schemas)]


def _files(folder: Path) -> list[_Passed]:
    """The schemas of the files, in the order of their versions."""
    if not folder.is_dir():
        is_ = "a file" if folder.exists() else "not there"
        raise value_error(
            f"a registry is a folder of .avsc files, a list of schemas or a mapping, and {str(folder)!r} is {is_}"
        )
    named = [(path, _NUMBERED.fullmatch(path.name)) for path in folder.glob("*.avsc") if path.is_file()]
    files = [(path.name, int(match[1]) if match else None, path) for path, match in named]
    files.sort(key=lambda file: (file[1] is not None, file[1] or 0, file[0]))
    return [_Passed(str(path), _text(path), version) for _, version, path in files]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as e:
        raise SchemaError(f"{path}: an Avro schema is UTF-8, and this is not: {e}") from None


def _by_digest(schemas: Sequence[_Passed]) -> Schemas:
    texts: list[str] = []
    keys: dict[Hashable, int] = {}
    versions: dict[int, list[int]] = {}
    for k, (where, schema, version) in enumerate(schemas):
        texts.append(_checked_text(schema, where))
        for text in (*_as_java_writes(texts[k]), *([schema] if isinstance(schema, str) else [])):
            keys |= dict.fromkeys(_digests(text), k)
        if version is not None:
            versions.setdefault(version, []).append(k)
    return Schemas(tuple(texts), keys | {version: ks[0] for version, ks in versions.items() if len(ks) == 1})


def java_texts(named: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """The texts of schemas as Avro's Java writes them. Each comes with its name for error messages."""
    return tuple(_checked_text(schema, where) for where, schema in named)


def with_digests(schemas: Schemas) -> Schemas:
    """Add the fingerprints of the texts as keys, which identify a schema in Databus events."""
    texts = ((k, text) for k, schema in enumerate(schemas.texts) for text in _as_java_writes(schema))
    digests: dict[Hashable, int] = {key: k for k, text in texts for key in _digests(text)}
    return schemas._replace(keys={**digests, **schemas.keys})


def _digests(text: str) -> tuple[bytes, bytes]:
    """MD5 and CRC-32 of the text."""
    data = text.encode()
    return hashlib.md5(data, usedforsecurity=False).digest(), zlib.crc32(data).to_bytes(4, "big")


def with_fingerprints(schemas: Schemas) -> Schemas:
    """Add the fingerprints of Avro's single-object encoding as keys. This needs the extra ``registry``."""
    with needing_the_extra("wire_format single_object"):
        from fastavro.schema import fingerprint, to_parsing_canonical_form

    prints: dict[Hashable, int] = {
        bytes.fromhex(fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO")): k
        for k, text in enumerate(schemas.texts)
    }
    return schemas._replace(keys={**schemas.keys, **prints})


def _checked_text(schema: Any, where: str) -> str:
    """The text of a schema as Avro's Java writes it."""
    try:
        parse(schema)
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    return java_text(schema)


# -- the text of a schema as Avro's Java writes it


def java_text(schema: Any) -> str:
    """The result of Java's ``Schema.parse(schema).toString()``, in today's versions of Avro.

    The text has no blanks, and its members are in Java's order. A namespace appears where it changes. Docs, defaults and
    properties stay.
    """
    return json.dumps(_java(loaded(schema), "", set()), separators=(",", ":"), ensure_ascii=False)


def _as_java_writes(text: str) -> tuple[str, str]:
    """The text of a schema as Avro's Java writes it, and as Avro 1.4 does, of which Databus itself takes the MD5.

    The second one is not exact if a type within a record has another namespace.
    """
    return text, java_text(_as_in_avro_1_4(loaded(text)))


_RESERVED_IN_1_4: Final = ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type")
"""names that are no properties, in any type"""


def _as_in_avro_1_4(json_type: Any) -> Any:
    """A schema without what the text of Avro 1.4 leaves out: docs of types, aliases of fields, properties that are no texts."""
    if isinstance(json_type, list):
        return [_as_in_avro_1_4(branch) for branch in json_type]
    if isinstance(json_type, str):
        return json_type
    result = {name: value for name, value in json_type.items() if _is_text_property(name, value)}
    for name in _RESERVED.get(json_type["type"], ("type",)):
        if name in json_type and name not in ("doc", "default"):
            result[name] = _as_in_avro_1_4(json_type[name]) if name in ("items", "values") else json_type[name]
    if "fields" in result:
        result["fields"] = [_field_as_in_avro_1_4(item) for item in result["fields"]]
    return result


def _field_as_in_avro_1_4(item: Mapping[str, Any]) -> dict[str, Any]:
    standard = {name: item[name] for name in ("name", "doc", "default", "order") if name in item}
    properties = {
        name: value for name, value in item.items() if name not in standard and _is_text_property(name, value)
    }
    return standard | {"type": _as_in_avro_1_4(item["type"])} | properties


def _is_text_property(name: str, value: Any) -> bool:
    return isinstance(value, str) and name not in _RESERVED_IN_1_4


_RESERVED: Final = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
}


def _java(json_type: Any, namespace: str, seen: set[str]) -> Any:
    if isinstance(json_type, list):
        return [_java(branch, namespace, seen) for branch in json_type]
    if isinstance(json_type, str):
        return _java_name(json_type, namespace, seen)
    kind = json_type["type"]
    if not isinstance(kind, str):
        return _java(kind, namespace, seen)
    if kind in NAMED:
        return _java_named(json_type, namespace, seen)
    properties = {name: value for name, value in json_type.items() if name not in _RESERVED.get(kind, ("type",))}
    if kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        return {"type": kind, part: _java(json_type[part], namespace, seen)} | properties
    return {"type": kind} | properties if properties else _java_name(kind, namespace, seen)


def _java_name(name: str, namespace: str, seen: set[str]) -> str:
    full = name if name in PRIMITIVES else full_name(name, namespace)
    inside = full in seen and full.rpartition(".")[0] == namespace
    return full.rpartition(".")[2] if inside else full


def _java_named(declared: Mapping[str, Any], namespace: str, seen: set[str]) -> dict[str, Any]:
    kind = declared["type"]
    full = full_name(declared["name"], declared.get("namespace", namespace) or "")
    inner, _, name = full.rpartition(".")
    seen.add(full)
    text: dict[str, Any] = {"type": kind, "name": name}
    if inner != namespace:
        text["namespace"] = inner
    if "doc" in declared:
        text["doc"] = declared["doc"]
    if kind == "record":
        text["fields"] = [_java_field(item, inner, seen) for item in declared["fields"]]
    for part in ("symbols", "size", "default"):
        if part in declared and part in _RESERVED[kind]:
            text[part] = declared[part]
    text |= {key: value for key, value in declared.items() if key not in _RESERVED[kind]}
    if declared.get("aliases"):
        text["aliases"] = [_java_alias(alias, inner) for alias in declared["aliases"]]
    return text


def _java_alias(alias: str, namespace: str) -> str:
    outer, _, name = alias.rpartition(".")
    return name if outer == namespace else alias


def _java_field(item: Mapping[str, Any], namespace: str, seen: set[str]) -> dict[str, Any]:
    text: dict[str, Any] = {"name": item["name"], "type": _java(item["type"], namespace, seen)}
    for part in ("doc", "default"):
        if part in item:
            text[part] = item[part]
    if item.get("order", "ascending") != "ascending":
        text["order"] = item["order"]
    if item.get("aliases"):
        text["aliases"] = item["aliases"]
    reserved = ("name", "type", "doc", "default", "order", "aliases")
    return text | {key: value for key, value in item.items() if key not in reserved}
