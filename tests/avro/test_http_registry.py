"""A registry over HTTP, compared with Confluent's deserializer; also one that is unreachable, slow, forbidden, busy or wrong."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trustme
from confluent_kafka.schema_registry import Schema as RegisteredSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from sparkwire.avro import Registry, http_registry, payloads, typed_rows
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.errors import RegistryError
from tests.avro.test_wire_formats import HEADERS
from tests.support.registry_server import RegistryServer, Response, serving

CITY = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
PLACE = {
    "type": "record",
    "name": "Place",
    "namespace": "geo",
    "fields": [{"name": "city", "type": "geo.City"}, {"name": "twin", "type": ["null", "City"], "default": None}],
}
ORDER_1 = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "to", "type": "geo.Place"}],
}
ORDER_2 = ORDER_1 | {"fields": [*ORDER_1["fields"], {"name": "note", "type": "string", "default": "-"}]}
STRATEGY = {"subject.name.strategy": topic_subject_name_strategy}
PARIS = {"id": 7, "to": {"city": {"name": "Paris"}, "twin": {"name": "Rome"}}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    monkeypatch.setattr(http_registry, "_FIRST_WAIT", 0.001)
    with serving() as registry:
        yield registry


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """A reference in a registry's form."""
    return {"name": name, "subject": subject, "version": version}


def with_orders(server: RegistryServer) -> list[int]:
    """The ids of two versions of an order, which refers to a place, which refers to a city."""
    server.register("city", CITY)
    server.register("place", PLACE, references=[reference("geo.City", "city")])
    to = [reference("geo.Place", "place")]
    return [server.register("orders-value", order, references=to) for order in (ORDER_1, ORDER_2)]


def written(server: RegistryServer, schema: dict[str, Any], value: Any, **settings: Any) -> tuple[bytes, list[Any]]:
    """A message and its headers, written by Confluent's serializer."""
    client = SchemaRegistryClient({"url": server.url})
    to = [SchemaReference("geo.Place", "place", 1)]
    registered = RegisteredSchema(json.dumps(schema), "AVRO", to)
    serializer = AvroSerializer(client, registered, conf=STRATEGY | {"auto.register.schemas": True} | settings)
    context = SerializationContext("orders", MessageField.VALUE, [])
    message = serializer(value, context)
    assert message is not None
    return message, list(context.headers or [])


def read_by_confluent(server: RegistryServer, messages: list[tuple[bytes, list[Any]]]) -> list[Any]:
    """Each message, read by Confluent's deserializer."""
    conf = STRATEGY | {"schema.id.deserializer": dual_schema_id_deserializer}
    deserializer = AvroDeserializer(SchemaRegistryClient({"url": server.url}), conf=conf)
    contexts = [SerializationContext("orders", MessageField.VALUE, headers) for _, headers in messages]
    return [deserializer(message, context) for (message, _), context in zip(messages, contexts, strict=True)]


def read_by_us(registry: Registry, messages: list[tuple[bytes, list[Any]]], name: str) -> list[Any]:
    """Each message as a row, with the columns of its own schema."""
    format = WIRE_FORMATS[name]
    values = pa.array([message for message, _ in messages], pa.binary())
    headers = [[{"key": key, "value": value} for key, value in named] for _, named in messages]
    result = (
        format.with_headers(values, pa.array(headers, HEADERS), "value")
        if format.with_headers
        else format.payloads(values)
    )
    ids = dict.fromkeys(typed_rows.as_id(key) for key in result.ids.to_pylist())
    reader = typed_rows.reader(registry.schemas(ids))
    columns, errors = reader.rows(result)
    assert errors.null_count == len(messages)
    names = [field.name for field in reader.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*(c.to_pylist() for c in columns), strict=True)]


@pytest.mark.parametrize("name", ["confluent", "confluent_header"])
def test_the_same_requests_and_results_as_confluents_deserializer(server: RegistryServer, name: str) -> None:
    with_orders(server)
    settings = {"schema.id.serializer": header_schema_id_serializer} if name == "confluent_header" else {}
    messages = [
        written(server, ORDER_1, PARIS, **settings),
        written(server, ORDER_2, PARIS | {"id": 8, "note": "x"}, **settings),
        written(server, ORDER_1, {"id": 9, "to": {"city": {"name": "Clermont"}, "twin": None}}, **settings),
    ] * 20
    server.requests.clear()
    theirs = read_by_confluent(server, messages)
    of_confluent = sorted(server.requests)
    server.requests.clear()
    ours = read_by_us(Registry.http(server.url), messages, name)
    assert [
        {key: value for key, value in row.items() if key in their} for row, their in zip(ours, theirs, strict=True)
    ] == theirs
    assert sorted(server.requests) == of_confluent
    assert len(server.requests) == len(set(server.requests)) == 4
    read_by_us(Registry.http(server.url), messages, name)
    assert len(server.requests) == 4  # a process does not fetch a known schema again


def test_subjects_give_all_their_versions_including_deleted_ones(server: RegistryServer) -> None:
    ids = with_orders(server)
    server.delete("orders-value")
    registry = Registry.http(server.url, subjects=["orders-value"])
    assert registry.ids() == ids
    server.requests.clear()
    assert list(registry.schemas(ids).keys) == [*ids, *map(str, ids)]
    assert server.requests == []
    with pytest.raises(RegistryError, match=rf"^the schema registry at {server.url} has no subject nothing$"):
        Registry.http(server.url, subjects=["nothing"]).ids()


def test_an_unknown_id_is_requested_again_after_a_while(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry.http(server.url)
    for _ in range(3):
        assert registry.registered([9]) == {}
    assert server.requests == ["GET /schemas/ids/9"]
    server.register("late", CITY, id=9)
    assert registry.registered([9]) == {}
    monkeypatch.setattr(http_registry, "_UNKNOWN_FOR", -1)
    assert list(registry.registered([9])) == [9]


def order_of(first: str, second: str) -> dict[str, Any]:
    """A record with two fields, in this order."""
    fields = [{"name": name, "type": "long"} for name in (first, second)]
    return {"type": "record", "name": "Order", "fields": fields}


@pytest.mark.parametrize("first", ["default", "eu"])
def test_an_id_belongs_to_its_context(server: RegistryServer, first: str) -> None:
    """One process fetches both from the same server."""
    texts = {"default": order_of("customer", "cents"), "eu": order_of("cents", "customer")}
    server.register("orders-value", texts["default"], id=1)
    server.register(":.eu:orders-value", texts["eu"], id=1)
    registries = {
        "default": Registry.http(server.url),
        "eu": Registry.http(server.url, subjects=[":.eu:orders-value"]),
    }
    for name in sorted(registries, key=lambda name: name != first) * 2:
        registries[name].ids()
        assert json.loads(registries[name].registered([1])[1].text) == texts[name], name
    both = Registry.http(server.url, subjects=["orders-value", ":.eu:orders-value"])
    for fetch in (both.ids, lambda: both.registered([1])):
        with pytest.raises(RegistryError, match=r"^schema 1 is not the same in the contexts \., \.eu of the registry"):
            fetch()


def test_fetching_a_guid_does_not_cache_its_id(server: RegistryServer) -> None:
    """Confluent's client also caches the schema of a GUID by its id, regardless of the context."""
    server.register(":.eu:orders-value", order_of("cents", "customer"), id=1)
    guid = server.guid(1)
    server.register("orders-value", order_of("customer", "cents"), id=1)
    registry = Registry.http(server.url)
    of_guid, of_id = registry.registered([guid])[guid], registry.registered([1])[1]
    assert [json.loads(one.text)["fields"][0]["name"] for one in (of_guid, of_id)] == ["cents", "customer"]


def test_a_reference_is_to_a_subject_of_the_context(server: RegistryServer) -> None:
    server.register("geo", order_of("lat", "long"))
    server.register(":.eu:geo", order_of("long", "lat"), id=7)
    to = [reference("Order", "geo")]
    server.register(":.eu:trip-value", PLACE, references=to, id=8)
    registry = Registry.http(server.url, subjects=[":.eu:trip-value"])
    for _ in range(2):
        assert registry.ids() == [8]
        [(_, text)] = registry.registered([8])[8].references
        assert json.loads(text) == order_of("long", "lat")


def test_apicurios_global_ids_come_from_its_own_api(server: RegistryServer) -> None:
    """Its version of Confluent's API has contentIds, with another schema under the same number."""
    server.register("orders-value", order_of("customer", "cents"), id=2)
    server.global_ids[2] = order_of("cents", "customer")
    registry = Registry.http(f"{server.url}/apis/ccompat/v7")
    result = registry.registered([2, "globalId 2", "globalId 3"])
    assert [(key, json.loads(one.text)["fields"][0]["name"]) for key, one in result.items()] == [
        (2, "customer"),
        ("globalId 2", "cents"),
    ]
    requests = list(server.requests)
    assert len(registry.registered([2, "globalId 2", "globalId 3"])) == 2
    assert server.requests == requests
    assert Registry.http(server.url).registered(["globalId 2"]) == {}


def test_a_number_that_is_a_content_id_and_a_global_id(server: RegistryServer) -> None:
    """Messages without headers do not say which of the two they have: it is an error, if the schemas differ."""
    for id in (2, 3, 4):
        server.register(f"subject-{id}", order_of("customer", "cents"), id=id)
    server.global_ids[2] = order_of("cents", "customer")
    server.global_ids[3] = order_of("customer", "cents")
    registry = Registry.http(f"{server.url}/apis/ccompat/v7").of_doubtful_ids()
    assert list(registry.registered([3, 4, "globalId 2"])) == [3, 4, "globalId 2"]
    for _ in range(2):
        with pytest.raises(RegistryError, match=r"^schema 2 is .*'apicurio_content_id' or 'apicurio_global_id'"):
            registry.registered([3, 2])
    assert list(Registry.http(f"{server.url}/apis/ccompat/v7").registered([2])) == [2]
    assert list(Registry.http(server.url).of_doubtful_ids().registered([2])) == [2]
    assert pickle.loads(pickle.dumps(registry)).registered([3]).keys() == {3}


def test_a_failed_request_is_not_cached_for_another_user(server: RegistryServer) -> None:
    """A client with unknown ids requests them again. Schemas that another user may read are not shared."""
    assert Registry.http(server.url).registered([9]) == {}
    server.register("late", CITY, id=9)
    assert list(Registry.http(server.url, ("wine", "secret")).registered([9])) == [9]
    assert list(Registry.http(server.url).registered([9])) == [9]
    server.failing = [Response(403, TEXT)]
    with pytest.raises(RegistryError, match="this user may not read it"):
        Registry.http(server.url, ("beer", "secret")).registered([9])


def token_of(config: dict[str, str]) -> dict[str, str]:
    """A provider of tokens for Confluent's client."""
    return {"bearer.auth.token": config["token"], "bearer.auth.logical.cluster": "", "bearer.auth.identity.pool.id": ""}


def test_settings_may_be_of_any_type(server: RegistryServer) -> None:
    server.register("city", CITY)
    for token in ("one", "another"):
        settings = {
            "bearer.auth.credentials.source": "CUSTOM",
            "bearer.auth.custom.provider.function": token_of,
            "bearer.auth.custom.provider.config": {"token": token},
        }
        assert list(Registry.http(server.url, settings=settings).registered([1])) == [1]
    assert server.authorizations == {"Bearer one", "Bearer another"}


def test_other_types_are_no_avro_schemas(server: RegistryServer) -> None:
    server.register("json", '{"type": "object"}', "JSON")
    server.register("city", CITY)
    registry = Registry.http(server.url)
    assert {id: one.type for id, one in registry.registered([1, 2]).items()} == {1: "JSON", 2: "AVRO"}
    assert len(registry.schemas([1, 2]).texts) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_a_temporary_error_is_retried(server: RegistryServer, status: int) -> None:
    [id] = {server.register("city", CITY)}
    server.failing = [Response(status)] * 4 + [Response(status, b"<html>busy</html>")]
    assert list(Registry.http(server.url).registered([id])) == [id]
    assert server.requests == [f"GET /schemas/ids/{id}"] * 6


ADDRESS = r"is this the address of a registry\?"
TEXT = b'{"error_code": 40301, "message": "User is denied operation Read"}'


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (Response(401, b'{"error_code": 401, "message": "Unauthorized"}'), "HTTP 401: Unauthorized: check auth"),
        (Response(403, TEXT), "HTTP 403: User is denied operation Read: this user may not read it"),
        (Response(404, b"<html>nginx</html>"), rf"HTTP 404: .*: {ADDRESS}"),
        (Response(200, b"<html>hello</html>"), rf"unexpected response \(JSONDecodeError .*\): {ADDRESS}"),
        (Response(200, b"null"), rf"unexpected response \(AttributeError .*\): {ADDRESS}"),
        (Response(400, b'{"error_code": 400, "message": "bad"}'), "HTTP 400: bad"),
    ],
    ids=lambda given: str(given.status) if isinstance(given, Response) else "",
)
def test_a_permanent_error_is_reported_at_once(server: RegistryServer, response: Response, says: str) -> None:
    server.failing = [response] * 3
    url = server.url.replace("http://", "http://wine:secret@")
    with pytest.raises(
        RegistryError, match=rf"^cannot get schema 7 from the schema registry at {server.url}: {says}$"
    ) as e:
        Registry.http(url).registered([7])
    assert "secret" not in str(e.value)
    assert "\n" not in str(e.value)
    assert len(server.requests) == 1


class Clock:
    """A clock that advances only while the code waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return sum(self.waits)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(http_registry, "time", clock)
    return clock


def test_retries_end(clock: Clock) -> None:
    """They end after a minute; each wait is longer than the last."""
    with serving() as server:
        server.failing = [Response(500)] * 100
        with pytest.raises(RegistryError, match=r"^cannot get schema 7 from .*: HTTP 500: store error$"):
            Registry.http(server.url).registered([7])
    assert clock.waits == [0.25, 0.5, 1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert len(server.requests) == len(clock.waits) + 1


def test_an_unreachable_registry(clock: Clock) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # but does not listen
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(
            RegistryError, match=rf"^cannot get schema 7 from the schema registry at {url}: no response: "
        ):
            Registry.http(url, patience=2).registered([7])
    assert clock.waits == [0.25, 0.5, 1]


def test_one_of_two_addresses_is_enough(server: RegistryServer) -> None:
    server.register("city", CITY)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]},{server.url}"
        assert list(Registry.http(url).registered([1])) == [1]


def test_tls_with_settings_of_the_client(tmp_path: Path) -> None:
    authority, file = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    with serving(authority) as server:
        server.register("city", CITY)
        with pytest.raises(RegistryError, match=r"no response: ConnectError .*CERTIFICATE_VERIFY_FAILED"):
            Registry.http(server.url, patience=0).registered([1])
        assert list(Registry.http(server.url, settings={"ssl.ca.location": str(file)}).registered([1])) == [1]


def test_a_proxy(server: RegistryServer) -> None:
    server.register("city", CITY)
    registry = Registry.http("http://registry.invalid:8081", settings={"proxy": server.url})
    assert list(registry.registered([1])) == [1]


def test_the_timeout_for_a_slow_registry_is_a_setting(server: RegistryServer) -> None:
    server.register("city", CITY)
    server.slow = 0.2
    with pytest.raises(RegistryError, match="no response: ReadTimeout"):
        Registry.http(server.url, patience=0, settings={"timeout": 0.05}).registered([1])
    assert list(Registry.http(server.url, settings={"timeout": 5}).registered([1])) == [1]


def test_references(server: RegistryServer) -> None:
    lost = server.register("lost", ORDER_1, references=[reference("geo.Place", "nowhere", 3)])
    server.register("b", "{}", references=[reference("a", "a")])
    server.register("a", "[]", references=[reference("b", "b")])
    turning = server.register("c", '"string"', references=[reference("a", "a")])
    registry, at = Registry.http(server.url), f"of the registry at {server.url}"
    with pytest.raises(
        RegistryError, match=rf"^schema {lost} {at} refers to nowhere, version 3, which does not exist$"
    ):
        registry.registered([lost])
    with pytest.raises(
        RegistryError, match=rf"^schema {turning} {at} refers to a, version 1, which leads back to itself$"
    ):
        registry.registered([turning])


def test_a_schema_that_does_not_parse_is_named(server: RegistryServer) -> None:
    server.register("bad", '{"type": "recird"}')
    server.register("bad place", "{", references=())
    server.register("refers", ORDER_1, references=[reference("geo.Place", "bad place")])
    registry, at = Registry.http(server.url), f"of the registry at {server.url}"
    with pytest.raises(ValueError, match=rf"^schema 1 {at}: .*recird"):
        registry.schemas([1])
    with pytest.raises(ValueError, match=rf"^schema 3 {at}: geo.Place, which it refers to: "):
        registry.schemas([3])


@pytest.mark.parametrize("text", ["{", "[" * 700 + '"int"' + "]" * 700])
def test_a_schema_that_refers_to_others_and_does_not_parse_is_named(server: RegistryServer, text: str) -> None:
    server.register("city", CITY)
    server.register("bad", text, references=[reference("geo.City", "city")])
    with pytest.raises(ValueError, match=rf"^schema 2 of the registry at {server.url}: (?:an|invalid) Avro schema "):
        Registry.http(server.url).schemas([2])


@pytest.mark.parametrize("name", ["basic", "token"])
def test_authentication_is_sent_and_never_shown(server: RegistryServer, name: str) -> None:
    server.register("city", CITY)
    registry = Registry.http(server.url, ("wine", "secret") if name == "basic" else "secret")
    assert list(registry.registered([1])) == [1]
    assert server.authorizations == {"Basic d2luZTpzZWNyZXQ=" if name == "basic" else "Bearer secret"}
    assert "secret" not in f"{registry!r} {registry} {vars(registry)}"
    assert list(pickle.loads(pickle.dumps(registry)).registered([1])) == [1]


@pytest.mark.parametrize("url", ["registry:8081", "ftp://wine:secret@registry", "", "http://wine:secret@registry"])
def test_an_invalid_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"^Registry.http\(") as e:
        Registry.http(url, ("a", "b"))
    assert "secret" not in str(e.value)


def test_an_unknown_setting() -> None:
    with pytest.raises(ValueError, match=r"^Registry.http\('http://r'\): Unrecognized properties: colour$"):
        Registry.http("http://r", settings={"colour": "red"})


@pytest.mark.process
@pytest.mark.parametrize(
    ("missing", "call"),
    [
        ("confluent_kafka", "Registry.http('http://r')"),
        ("fastavro", "with_fingerprints(Schemas((), {}))"),
        ("referencing", "row_type([Registered('{}', 'schema 1')])"),
        ("grpc_tools", "compiled(Registered('', 'schema 1'))"),
    ],
)
def test_without_the_extra(missing: str, call: str) -> None:
    program = textwrap.dedent(f"""
        import sys
        sys.modules[{missing!r}] = None
        from sparkwire.avro import Registry
        from sparkwire.registry.json_schema import row_type
        from sparkwire.registry.protobuf import compiled
        from sparkwire.avro.schema_source import Registered
        from sparkwire.avro.schemas import Schemas, with_fingerprints
        try:
            {call}
        except ModuleNotFoundError as e:
            print(e)
    """)
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert f"needs {missing}, which is not installed: install the extra 'registry' of sparkwire" in said


def test_live_readers_fetch_each_id_once(server: RegistryServer) -> None:
    [first, second] = with_orders(server)
    messages = [
        written(server, ORDER_1, PARIS)[0],
        written(server, ORDER_2, PARIS | {"note": "x"})[0],
        b"\0\0\0\0\x63\2",
        b"\0\0\0\0\1\2x",  # a city
    ]
    wanted = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    server.requests.clear()
    reader = typed_rows.LiveReader(Registry.http(server.url), json.dumps(wanted))
    for some in (messages[:1], messages, messages):
        [column], errors = reader.rows(payloads.of_confluent(pa.array(some, pa.binary())))
        assert column.to_pylist() == [7, 7, None, None][: len(some)]
        assert errors.to_pylist() == [None, None, "UNKNOWN_SCHEMA", "BAD_FIELD"][: len(some)]
    assert [line for line in server.requests if "ids" in line] == [
        f"GET /schemas/ids/{id}" for id in (first, second, 99, 1)
    ]
