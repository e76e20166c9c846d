"""Inline the references of a schema. Each type is defined where its name first occurs, as in Avro's own schema texts."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from sparkwire.avro.registered import AVRO, Registered
from sparkwire.avro.schema import NAMED, PRIMITIVES, TOO_DEEP, full_name, loaded
from sparkwire.avro.schemas import Schemas, ids_of, java_texts
from sparkwire.errors import SchemaError


def schemas_of_registered(registered: Mapping[Hashable, Registered]) -> Schemas:
    """The Avro schemas of a registry, with references inlined. Schemas that cannot be read are listed separately."""
    texts: dict[Hashable, str] = {}
    unreadable: dict[Hashable, str] = {}
    for key, one in registered.items():
        if one.type == AVRO:
            try:
                [texts[key]] = java_texts([(one.title, inlined(one))])
            except SchemaError as e:
                unreadable[key] = str(e)
    with_texts = {key: unreadable[list(unreadable)[k]] for key, k in ids_of(unreadable).items()}
    return Schemas(tuple(texts.values()), ids_of(texts), with_texts)


Definitions = Mapping[str, Mapping[str, Any]]


def inlined(schema: Registered) -> str:
    """The text of a schema, with its references inlined. Raises SchemaError for a text that is not JSON or nested too deeply."""
    if not schema.references:
        return schema.text
    definitions: dict[str, Mapping[str, Any]] = {}
    where = schema.title
    try:
        for name, text in schema.references:
            where = f"{schema.title}: {name}, which it refers to"
            definitions |= dict(_definitions(loaded(text), ""))
        where = schema.title
        return json.dumps(_inlined(loaded(schema.text), "", definitions, set()))
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    except RecursionError:
        raise SchemaError(f"{where}: {TOO_DEEP}") from None


def _definitions(json_type: Any, namespace: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each named type with its namespace."""
    if isinstance(json_type, list):
        for branch in json_type:
            yield from _definitions(branch, namespace)
    elif isinstance(json_type, dict):
        if json_type.get("type") in NAMED and isinstance(json_type.get("name"), str):
            full = full_name(json_type["name"], json_type.get("namespace", namespace) or "")
            namespace, _, name = full.rpartition(".")
            yield full, {**json_type, "name": name, "namespace": namespace}
        for part in _parts(json_type):
            yield from _definitions(part, namespace)


def _parts(json_type: Mapping[str, Any]) -> Iterator[Any]:
    yield from (json_type[name] for name in ("type", "items", "values") if name in json_type)
    fields = json_type.get("fields")
    if isinstance(fields, list):
        yield from (field["type"] for field in fields if isinstance(field, dict) and "type" in field)


def _inlined(json_type: Any, namespace: str, definitions: Definitions, defined: set[str]) -> Any:
    if isinstance(json_type, str):
        full = next((name for name in (full_name(json_type, namespace), json_type) if name in definitions), None)
        if json_type in PRIMITIVES or full is None or full in defined:
            return json_type
        return _inlined(definitions[full], "", definitions, defined)
    if isinstance(json_type, list):
        return [_inlined(branch, namespace, definitions, defined) for branch in json_type]
    if not isinstance(json_type, dict):
        return json_type
    kind = json_type.get("type")
    if kind in NAMED and isinstance(json_type.get("name"), str):
        full = full_name(json_type["name"], json_type.get("namespace", namespace) or "")
        if full in defined:
            return full
        defined.add(full)
        namespace = full.rpartition(".")[0]
    elif not isinstance(kind, str) or kind not in (*NAMED, "array", "map"):
        return {**json_type, "type": _inlined(kind, namespace, definitions, defined)}
    inlined = dict(json_type)
    for part in ("items", "values"):
        if part in inlined:
            inlined[part] = _inlined(inlined[part], namespace, definitions, defined)
    if isinstance(inlined.get("fields"), list):
        inlined["fields"] = [
            {**field, "type": _inlined(field.get("type"), namespace, definitions, defined)}
            if isinstance(field, dict)
            else field
            for field in inlined["fields"]
        ]
    return inlined
