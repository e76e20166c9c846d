"""The text of a schema as Avro's Java writes it. Databus identifies an event's schema by the MD5 of this text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sparkwire.avro.schema import NAMED, PRIMITIVES, full_name, loaded


def java_text(schema: Any) -> str:
    """The result of Java's ``Schema.parse(schema).toString()``, of which Databus computes the MD5.

    The text has no blanks, and its members are in Java's order. A namespace appears where it changes. Docs, defaults and
    properties stay.
    """
    return json.dumps(_java(loaded(schema), "", set()), separators=(",", ":"), ensure_ascii=False)


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
