"""A registry read from its topic: registrations, deletions, aliases, and ids that differ between contexts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sparkwire.avro import Registry
from sparkwire.avro.registry import TopicSchemas
from sparkwire.avro.schema import parse
from sparkwire.errors import RegistryError
from tests.avro.test_http_registry import CITY, ORDER_1, PLACE, reference

Record = tuple[int, bytes | None, bytes | None]


def of(*records: tuple[Any, Any], subjects: Sequence[str] = (), context: str | None = None) -> TopicSchemas:
    """A registry from keys and values in the order in which they were written."""
    ordered = ((offset, _json(key), _json(value)) for offset, (key, value) in enumerate(records))
    return TopicSchemas(ordered, subjects, context)


def _json(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def key(subject: str, version: int = 1) -> dict[str, Any]:
    """A key as Confluent's Schema Registry 7.6 writes it; so are all records here."""
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def value(subject: str, version: int, id: int, schema: Any, **more: Any) -> dict[str, Any]:
    """The value of a version of a subject."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"subject": subject, "version": version, "id": id, "schema": text, "deleted": False} | more


def version(subject: str, number: int, id: int, schema: Any, **more: Any) -> tuple[Any, Any]:
    """The record of a version."""
    return key(subject, number), value(subject, number, id, schema, **more)


def names(registry: TopicSchemas, *ids: Any) -> list[str | None]:
    """The names of the registry's Avro records."""
    return [parse(registry.schemas([id]).texts[0]).name if registry.registered([id]) else None for id in ids]


def test_versions_of_subjects() -> None:
    registry = of(
        ({"keytype": "NOOP", "magic": 0}, None),
        version("city-value", 1, 3, CITY, md5="AAAA"),
        version("place", 1, 4, PLACE, references=[reference("geo.City", "city-value")], guid="00ff"),
        version("orders-value", 1, 5, ORDER_1, references=[reference("geo.Place", "place")]),
        version("shapes", 1, 6, '{"type": "object"}', schemaType="JSON"),
    )
    assert registry.ids() is None
    assert names(registry, 3, 4, 5, "00ff", 9) == ["geo.City", "geo.Place", "shop.Order", "geo.Place", None]
    assert registry.registered([6])[6].type == "JSON"
    assert [(one.subject, one.version, one.id) for one in registry.versions()] == [
        ("city-value", 1, 3),
        ("orders-value", 1, 5),
        ("place", 1, 4),
        ("shapes", 1, 6),
    ]


def test_the_versions_of_some_subjects() -> None:
    records = [version("a", 2, 5, CITY), version("b", 1, 4, PLACE), version("a", 1, 6, {**CITY, "name": "First"})]
    assert of(*records, subjects=["a"]).ids() == [6, 5]
    with pytest.raises(RegistryError, match=r"^the registry's topic has no subject c$"):
        of(*records, subjects=["a", "c"]).ids()


def test_the_last_record_of_a_key_counts_by_its_offset() -> None:
    records = [
        (7, _json(key("a")), _json(value("a", 1, 3, {**CITY, "name": "Later"}))),
        (2, _json(key("a")), _json(value("a", 1, 3, CITY))),
    ]
    assert names(TopicSchemas(records), 3) == ["geo.Later"]


def test_deleted_versions_stay_known() -> None:
    """Data that were written with them still exist."""
    registry = of(
        version("a", 1, 1, CITY),
        version("a", 2, 2, {**CITY, "name": "Town"}),
        version("b", 1, 3, {**CITY, "name": "Soft"}),
        ({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, {"subject": "a", "version": 1}),
        version("b", 1, 3, {**CITY, "name": "Soft"}, deleted=True),
        (key("a", 2), None),
    )
    assert [one.deleted for one in registry.versions()] == [True, True, True]
    assert names(registry, 1, 2, 3) == ["geo.City", "geo.Town", "geo.Soft"]


def test_a_subject_by_its_alias() -> None:
    place = version("place", 1, 4, PLACE, references=[reference("geo.City", "towns")])
    config = {"keytype": "CONFIG", "subject": "towns", "magic": 0}
    aliased = (config, {"alias": "city", "compatibilityLevel": "NONE"})
    assert names(of(version("city", 1, 3, CITY), place, aliased), 4) == ["geo.Place"]
    for after in ((config, {"compatibilityLevel": "NONE"}), (config, None)):
        registry = of(version("city", 1, 3, CITY), place, aliased, after)
        with pytest.raises(
            RegistryError, match=r"^schema 4 .* \(place, version 1\) refers to towns, version 1, which does not exist$"
        ):
            registry.registered([4])


def test_references_stay_within_their_context() -> None:
    registry = of(
        version("city", 1, 1, {**CITY, "doc": "another"}),
        version(":.eu:city", 1, 1, CITY),
        version(":.eu:place", 1, 2, PLACE, references=[reference("geo.City", "city")]),
        context=".eu",
    )
    assert "another" not in registry.schemas([2]).texts[0]


def test_one_id_in_several_contexts() -> None:
    mine, eu = version("a", 1, 1, CITY), version(":.eu:a", 1, 1, {**CITY, "name": "EU"})
    us = version(":.us:a", 1, 1, {**CITY, "name": "US"})
    assert names(of(eu, mine, us), 1) == ["geo.City"]
    assert names(of(eu), 1) == ["geo.EU"]
    assert names(of(mine, eu, us, context=".us"), 1, 2) == ["geo.US", None]
    assert names(of(eu, version(":.us:a", 1, 1, {**CITY, "name": "EU"})), 1) == ["geo.EU"]
    with pytest.raises(
        RegistryError, match=r"^schema 1 is not the same in the contexts \.eu, \.us of the registry: choose one"
    ):
        of(eu, us).registered([1])


def test_ids_belong_to_the_context_of_the_subjects() -> None:
    mine, eu = version("a", 1, 1, CITY), version(":.eu:a", 1, 1, {**CITY, "name": "EU"})
    assert names(of(mine, eu, subjects=[":.eu:a"]), 1) == ["geo.EU"]
    assert names(of(mine, eu, subjects=["a"]), 1) == ["geo.City"]
    with pytest.raises(RegistryError, match=r"^schema 1 is not the same in the contexts \., \.eu of the registry"):
        of(mine, eu, subjects=["a", ":.eu:a"]).registered([1])


def test_records_that_no_registry_wrote_are_skipped() -> None:
    odd = [
        (b"\xff", b"{"),
        (None, None),
        (b"[]", b"{}"),
        (key("x"), b"not JSON"),
        (key("x"), {"subject": "x"}),
        (key("x"), value("x", 1, 8, CITY) | {"id": "eight"}),
        (key("x"), value("x", 1, 8, CITY) | {"references": [{"name": "y"}]}),
        (key("x"), value("x", 1, 8, CITY) | {"references": 5}),
        ({"keytype": "DELETE_SUBJECT", "subject": "a"}, {"version": "all"}),
        ({"keytype": "CONFIG", "subject": None}, {"alias": "a"}),
    ]
    registry = of(*odd, version("a", 1, 1, CITY), *odd)
    assert names(registry, 1, 8) == ["geo.City", None]
    with pytest.raises(
        ValueError, match=r"^Registry.topic found no schema in 10 records: is this the registry's topic, _schemas\?"
    ):
        of(*odd)


def test_a_cycle_of_references() -> None:
    registry = of(
        version("a", 1, 1, "{}", references=[reference("b", "b")]),
        version("b", 1, 2, "{}", references=[reference("a", "a")]),
    )
    with pytest.raises(RegistryError, match=r"which leads back to itself$"):
        registry.registered([1])


def test_versions_of_another_registry() -> None:
    """Only a topic lists them."""
    with pytest.raises(NotImplementedError, match=r"^Registry.of 1 schemas does not list its versions: read its topic"):
        Registry.of({1: "int"}).versions()
