"""Descriptors from Protobuf schemas of a registry, and the paths in payloads."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from sparkwire.avro.schema_source import Registered
from sparkwire.registry.protobuf import compiled, without_paths

CITY = 'syntax = "proto3"; package geo; message City { string name = 1; }'
ORDER = """
syntax = "proto3";
package shop;
import "geo/city.proto";
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; geo.City to = 2; google.protobuf.Timestamp at = 3;
  message Line { int32 count = 1; message Tax {} } }
message Refund { int64 order = 1; }
"""


def registered(text: str, **references: str) -> Registered:
    named = tuple((name.replace("__", "/") + ".proto", other) for name, other in references.items())
    return Registered(text, "schema 7 of the registry", "PROTOBUF", named)


def test_a_file_and_its_imports() -> None:
    result = compiled(registered(ORDER, geo__city=CITY))
    assert result.names == {
        "0": "shop.Order",
        "0.0": "shop.Order.Line",
        "0.0.0": "shop.Order.Line.Tax",
        "1": "shop.Refund",
    }
    files = [file.name for file in FileDescriptorSet.FromString(result.descriptors).file]
    assert files == ["geo/city.proto", "google/protobuf/timestamp.proto", "registered.proto"]
    assert compiled(registered("message M {}")).names == {"0": "M"}


def test_the_error_names_an_invalid_file() -> None:
    with pytest.raises(ValueError, match=r"^schema 7 of the registry is not Protobuf: geo/city.proto: File not found"):
        compiled(registered(ORDER))
    with pytest.raises(ValueError, match=r"^schema 7 of the registry is not Protobuf: registered.proto:1:1: Expected"):
        compiled(registered("what"))
    with pytest.raises(ValueError, match=r"refers to \.\./out\.proto, which is not the path of an import$"):
        compiled(registered(CITY, **{"..__out": CITY}))


def test_paths() -> None:
    given = {
        b"\0abc": ("0", b"abc"),
        b"\0": ("0", b""),
        b"\2\2x": ("1", b"x"),
        b"\4\0\4yz": ("0.2", b"yz"),
        b"\2\x80\2": ("128", b""),
        b"": (None, None),
        b"\2": (None, None),
        b"\1": (None, None),  # -1
        b"\x80": (None, None),
        b"\xff\xff\xff\xff\xff\xff": (None, None),
        b"\xfe\xff\xff\xff\x0f" + bytes(70): (None, None),
    }
    paths, data = without_paths(pa.array([*given, None], pa.binary()))
    assert list(zip(paths.to_pylist(), data.to_pylist(), strict=True)) == [*given.values(), (None, None)]
    empty, _ = without_paths(pa.array([], pa.binary()))
    assert len(empty) == 0
