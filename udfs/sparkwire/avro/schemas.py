"""Many schemas and what names them: digests of their texts, versions, numbers of a registry, or any key."""

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

from sparkwire.avro.java_text import java_text
from sparkwire.avro.registered import needing_the_extra
from sparkwire.avro.schema import Schema, parse
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.errors import SchemaError

UNKNOWN_SCHEMA: Final = "UNKNOWN_SCHEMA"
"""the `_error_` of a row whose schema the registry does not have"""

_NUMBERED: Final = re.compile(r"(?:.*\.)?(\d+)\.avsc")
"""a file named by an id or a version"""
_MD5_SIZE: Final = 16  # [bytes]
_OVERLAID: Final = bytes(_MD5_SIZE - 2)
"""REPL_DBUS stores a version in the first two bytes of the digest's place"""

Given = str | Path | Iterable[Any] | Mapping[Any, Any]


class Schemas(NamedTuple):
    """Schemas in the order in which they were given; a later one of the same name is a later version."""

    texts: tuple[str, ...]
    """as Java writes them"""
    keys: Mapping[Hashable, int]
    """the schema that a digest, a version or another key names"""
    unreadable: Mapping[Hashable, str] = MappingProxyType({})
    """the keys of schemas that cannot be read, and why"""

    def with_more(self, more: Schemas) -> Schemas:
        """These, then others."""
        keys = {key: k + len(self.texts) for key, k in more.keys.items()}
        unreadable = {**self.unreadable, **more.unreadable}
        return Schemas((*self.texts, *more.texts), {**self.keys, **keys}, unreadable)

    def why_unknown(self, ids: pa.Array) -> pa.Array:
        """STRING: the error of a row with each of these ids, for those that are unknown."""
        encoded = pc.dictionary_encode(ids)
        unread = pa.array([key in self.unreadable for key in encoded.dictionary.to_pylist()], pa.bool_())
        return pc.if_else(unread.take(encoded.indices).fill_null(False), ERRORS[BAD_FIELD], UNKNOWN_SCHEMA)

    def chosen(self, ids: pa.Array) -> NDArray[np.int32]:
        """The schema of each row by its id, -1 for one that is unknown."""
        encoded = pc.dictionary_encode(ids)
        known = [self.keys.get(key, self._overlaid(key)) for key in encoded.dictionary.to_pylist()]
        numbers = np.array([*known, -1], np.int32)
        return numbers[np.asarray(encoded.indices.fill_null(len(known)), np.int64)]

    def _overlaid(self, key: Any) -> int:
        if isinstance(key, bytes) and len(key) == _MD5_SIZE and key[2:] == _OVERLAID:
            return self.keys.get(int.from_bytes(key[:2], "big", signed=True), -1)
        return -1

    def parsed(self) -> list[Schema]:
        """The schemas."""
        return [parse(text) for text in self.texts]


def schemas_of(schemas: Given) -> Schemas:
    """The schemas of a folder of ``.avsc`` files, of schemas, or of a mapping from ids to schemas.

    In a folder a file ``<id>.avsc`` or ``<name>.<version>.avsc`` gives its schema a number, which names it where no other has
    the same. A digest names a schema by its text as it is given, and by its text as Avro's Java writes it.

    SchemaError where a schema is none; it is named; ValueError where there is no schema; TypeError where it is none of these.
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
    """Each schema by its key; a number by its text, too, and the other way round, as JSON has no numbers for keys."""
    keys: dict[Hashable, int] = {key: k for k, key in enumerate(schemas)}
    for key, k in list(keys.items()):
        if isinstance(key, str) and key.isascii() and key.isdigit():
            keys.setdefault(int(key), k)
        elif isinstance(key, int):
            keys.setdefault(str(key), k)
    return keys


class _Given(NamedTuple):
    """A schema as it was given."""

    where: str
    """its name in an error message"""
    schema: Any
    version: int | None = None


def _listed(schemas: Iterable[Any]) -> list[_Given]:
    return [_Given(f"schema {k}", schema) for k, schema in enumerate(schemas)]


def _files(folder: Path) -> list[_Given]:
    """Those of the files, the versions of a name in their order."""
    if not folder.is_dir():
        is_ = "a file" if folder.exists() else "not there"
        raise ValueError(
            f"a registry is a folder of .avsc files, a list of schemas or a mapping, and {str(folder)!r} is {is_}"
        )
    named = [(path, _NUMBERED.fullmatch(path.name)) for path in folder.glob("*.avsc")]
    files = [(path.name, int(match[1]) if match else None, path) for path, match in named]
    files.sort(key=lambda file: (file[1] is not None, file[1] or 0, file[0]))
    return [_Given(str(path), _text(path), version) for _, version, path in files]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as e:
        raise SchemaError(f"{path}: an Avro schema is UTF-8, and this is not: {e}") from None


def _by_digest(schemas: Sequence[_Given]) -> Schemas:
    texts: list[str] = []
    keys: dict[Hashable, int] = {}
    versions: dict[int, list[int]] = {}
    for k, (where, schema, version) in enumerate(schemas):
        texts.append(_java(schema, where))
        for text in (texts[k], schema) if isinstance(schema, str) else (texts[k],):
            keys |= dict.fromkeys(_digests(text), k)
        if version is not None:
            versions.setdefault(version, []).append(k)
    return Schemas(tuple(texts), keys | {version: ks[0] for version, ks in versions.items() if len(ks) == 1})


def java_texts(named: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """The texts of schemas, each with its name in an error message."""
    return tuple(_java(schema, where) for where, schema in named)


def with_digests(schemas: Schemas) -> Schemas:
    """Each schema also by the digests of its text, which name it in a Databus event."""
    digests: dict[Hashable, int] = {key: k for k, text in enumerate(schemas.texts) for key in _digests(text)}
    return schemas._replace(keys={**digests, **schemas.keys})


def _digests(text: str) -> tuple[bytes, bytes]:
    """MD5 and CRC-32."""
    data = text.encode()
    return hashlib.md5(data, usedforsecurity=False).digest(), zlib.crc32(data).to_bytes(4, "big")


def with_fingerprints(schemas: Schemas) -> Schemas:
    """Each schema also by the fingerprint of Avro's single-object encoding; needs the extra ``registry``."""
    with needing_the_extra("wire_format single_object"):
        from fastavro.schema import fingerprint, to_parsing_canonical_form

    prints: dict[Hashable, int] = {
        bytes.fromhex(fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO")): k
        for k, text in enumerate(schemas.texts)
    }
    return schemas._replace(keys={**schemas.keys, **prints})


def _java(schema: Any, where: str) -> str:
    try:
        parse(schema)
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    return java_text(schema)
