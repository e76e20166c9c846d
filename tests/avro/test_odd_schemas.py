"""Odd schemas and registries: readable rows are read, and the others have an error."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro import Registry, payloads, targets, to_python, typed_rows
from sparkwire.avro.schema import parse
from sparkwire.avro.schema_source import Registered, SchemaSource
from sparkwire.avro.schemas import Schemas, _files, schemas_of
from sparkwire.avro.typed_rows import LiveReader, RowsReader, type_name
from sparkwire.avro.typed_values import typed
from sparkwire.changes.datahub import column_type
from sparkwire.changes.datahub_rows import row_schema
from tests.avro.test_hostile_schemas import twice
from tests.avro.test_resolution import enum, field, record
from tests.support.arrow import with_dicts
from tests.support.avro_versions import decimal, logical, written

A = record(field("a", "int"), name="A")


def rows_of(reader: Any, rows: Sequence[tuple[Any, bytes | None]]) -> list[dict[str, Any]]:
    """The rows of bare data with a column of ids, and their errors."""
    values = pa.array([data for _, data in rows], pa.binary())
    columns, errors = reader.rows(payloads.of_column(values, pa.array([key for key, _ in rows])))
    names = [field.name for field in reader.fields_renamed(["_error_"])]
    columns = [*(with_dicts(column) for column in columns), errors.to_pylist()]
    return [dict(zip([*names, "_error_"], row, strict=True)) for row in zip(*columns, strict=True)]


def together(*schemas: Any) -> RowsReader:
    """A reader of schemas; the ids are their indexes."""
    return typed_rows.reader(schemas_of(dict(enumerate(schemas))))


class Slow(SchemaSource):
    """A registry that has no schemas before the first request."""

    def __init__(self, known: dict[Hashable, Registered]) -> None:
        self.known, self.requests = known, list[Hashable]()

    def ids(self) -> None:
        return None

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        self.requests += ids
        return {id: self.known[id] for id in ids if id in self.known}


# ---------------------------------------------------------------- nothing known yet


@pytest.mark.parametrize("wanted", [A, "int", {"type": "array", "items": "int"}])
def test_a_first_batch_without_schema_ids(wanted: Any) -> None:
    reader = LiveReader(Slow({}), json.dumps(wanted))
    messages = pa.array([None, b"\0\0\0\0\7\2", b"no prefix", b""], pa.binary())
    for _ in range(2):
        columns, errors = reader.rows(payloads.of_confluent(messages))
        assert [column.null_count for column in columns] == [4]
        assert errors.to_pylist() == [None, "UNKNOWN_SCHEMA", "BAD_MAGIC", "BAD_MAGIC"]


def test_a_reader_of_no_schemas() -> None:
    reader = RowsReader(Schemas((), {}))
    columns, errors = reader.rows(payloads.of_confluent(pa.array([None, b"\0\0\0\0\7\2", b""], pa.binary())))
    assert (columns, reader.fields) == ([], [])
    assert errors.to_pylist() == [None, "UNKNOWN_SCHEMA", "BAD_MAGIC"]


def test_ids_that_become_known_and_schemas_of_other_kinds() -> None:
    registry = Slow(
        {
            1: Registered(json.dumps(A), "one"),
            2: Registered("{", "two"),
            3: Registered('{"type":"object"}', "three", "JSON"),
            4: Registered('"string"', "four"),
        }
    )
    reader = LiveReader(registry, json.dumps(A))
    rows: list[tuple[Any, bytes | None]] = [(1, b"\4"), (2, b"\4"), (3, b"\4"), (4, b"\2x"), (None, None), (1, b"\6")]
    for _ in range(2):
        assert [(row["a"], row["_error_"]) for row in rows_of(reader, rows)] == [
            (2, None),
            (None, "BAD_FIELD"),
            (None, "UNKNOWN_SCHEMA"),
            (None, "BAD_FIELD"),
            (None, None),
            (3, None),
        ]
    assert registry.requests.count(1) == registry.requests.count(2) == 1


def test_one_invalid_schema_does_not_end_the_query() -> None:
    registry = Slow({1: Registered(json.dumps(A), "one"), 2: Registered('{"type":"x"}', "two")})
    schemas = registry.schemas([1, 2])
    assert [row["_error_"] for row in rows_of(typed_rows.reader(schemas), [(1, b"\4"), (2, b"\4"), (9, b"\4")])] == [
        None,
        "BAD_FIELD",
        "UNKNOWN_SCHEMA",
    ]
    with pytest.raises(ValueError, match=r"^two: the schema has the type 'x'"):
        registry.schemas([2])


# ---------------------------------------------------------------- one odd version, one odd type


def test_a_mapping_and_a_registry_give_the_same_rows() -> None:
    versions = {1: record(field("a", "long"), name="A"), 2: A, 3: record(field("b", "string"), name="A"), 4: "string"}
    rows: list[tuple[Any, bytes | None]] = [(1, b"\4"), (2, b"\6"), (3, b"\2x"), (4, b"\2x")]
    live = LiveReader(Slow({k: Registered(json.dumps(v), str(k)) for k, v in versions.items()}), json.dumps(A))
    result = rows_of(typed_rows.reader(schemas_of(versions), A), rows)
    assert result == rows_of(live, rows)
    assert [(row["a"], row["_error_"]) for row in result] == [
        (None, "BAD_FIELD: a"),
        (3, None),
        (None, "BAD_FIELD: a"),
        (None, "BAD_FIELD"),
    ]


def test_an_invalid_reader_schema_is_rejected_at_once() -> None:
    with pytest.raises(ValueError, match=r"^the default of a is no int: 'x'$"):
        typed_rows.reader(schemas_of({1: A}), record(field("a", "int", default="x"), name="A"))


def test_a_decimal_of_64_digits_beside_other_types() -> None:
    big = record(field("n", decimal(64, 3)), field("id", "int"), name="Big")
    number = Decimal("-1234567890123456789012345678901234567890.125")
    rows = rows_of(together(A, big), [(0, b"\4"), (1, written(big, {"n": number, "id": 7}))])
    assert rows == [
        {"a": 2, "n": None, "id": None, "_error_": None},
        {"a": None, "n": str(number), "id": 7, "_error_": None},
    ]
    assert to_python(written(big, {"n": number, "id": 7}), big) == {"n": str(number), "id": 7}


@pytest.mark.parametrize("size", [30, 20_000])
def test_a_decimal_of_more_digits_than_its_precision_of_64(size: int) -> None:
    big = record(field("n", {"type": "array", "items": decimal(64, 3)}), field("id", "int"), name="Big")
    items = b"".join(_varint(len(data)) + data for data in (b"\x01", b"\x7f" + b"\xff" * size))
    [row, empty] = rows_of(together(big), [(0, b"\x04" + items + b"\x00\x0e"), (0, b"\x00\x0e")])
    assert row == {"n": ["0.001", None], "id": 7, "_error_": "BAD_FIELD: n[]"}
    assert empty == {"n": [], "id": 7, "_error_": None}


NODE = record(
    field("id", "int"), field("next", ["null", "Node"]), field("kids", {"type": "array", "items": "Node"}), name="Node"
)


def test_a_recursive_record_beside_other_types() -> None:
    """A recursive field is NULL if it has a value, and its error names it. All other fields are read."""
    rows: list[tuple[Any, bytes]] = [(1, b"\2\0\0"), (1, b"\2\2\4\0\0\0"), (1, b"\2\0\2\4\0\0\0"), (1, b"\2")]
    expected: list[dict[str, Any]] = [
        {"id": 1, "next": None, "kids": [], "_error_": None},
        {"id": 1, "next": None, "kids": [], "_error_": "BAD_FIELD: next"},
        {"id": 1, "next": None, "kids": [None], "_error_": "BAD_FIELD: kids[]"},
        {"id": None, "next": None, "kids": None, "_error_": "TRUNCATED"},
    ]
    result = rows_of(together(A, NODE), [(0, b"\4"), *rows])
    assert result[0] == {"a": 2, "id": None, "next": None, "kids": None, "_error_": None}
    assert result[1:] == [{"a": None, **row} for row in expected]
    tables = typed_rows.by_name(schemas_of({0: A, 1: NODE}))
    assert rows_of(tables["Node"], rows) == expected
    assert rows_of(tables["A"], [(0, b"\4")]) == [{"a": 2, "_error_": None}]
    union = together(record(field("u", ["null", "string", "Node", "int"]), name="Node"))
    read = [(row["u"], row["_error_"]) for row in rows_of(union, [(0, b"\2\2x"), (0, b"\4\0"), (0, b"\6\2")])]
    assert read == [
        ({"member0": "x", "member1": None, "member2": None}, None),
        (None, "BAD_FIELD: u"),
        ({"member0": None, "member1": None, "member2": 1}, None),
    ]


@pytest.fixture
def at_most_500_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (targets, typed_rows):
        monkeypatch.setattr(module, "MAX_COLUMNS", 500)


def many(columns: int, name: str = "Much") -> dict[str, Any]:
    """A record with this number of columns."""
    return record(*(field(f"{name}_{k}", "int") for k in range(columns)), name=name)


@pytest.mark.usefixtures("at_most_500_columns")
def test_a_record_of_too_many_columns_beside_other_types() -> None:
    for much in (many(501), twice(60, "int") | {"name": "Much"}):
        rows: list[tuple[Any, bytes | None]] = [(0, b"\4"), (1, bytes(600)), (1, None), (2, b"\2\0\0")]
        result = rows_of(together(A, much, NODE), rows)
        assert [(row["a"], row["id"], row["_error_"]) for row in result] == [
            (2, None, None),
            (None, None, "BAD_FIELD"),
            (None, None, None),
            (None, 1, None),
        ]
        tables = typed_rows.by_name(schemas_of({0: A, 1: much}))
        assert rows_of(tables["Much"], [(1, bytes(600))]) == [{"_error_": "BAD_FIELD"}]
        assert rows_of(tables["A"], [(0, b"\4")]) == [{"a": 2, "_error_": None}]
        with pytest.raises(ValueError, match=r"more than 500 columns, .*: read them as JSON, with avro_json$"):
            together(much)


def test_the_most_columns_that_are_read() -> None:
    """Columns that are listed one after the other, or in records that double their number."""
    for much in (many(50_001), twice(60, "int")):
        with pytest.raises(ValueError, match=r"more than 50000 columns, .*: read them as JSON, with avro_json$"):
            together(much)


@pytest.mark.usefixtures("at_most_500_columns")
def test_types_of_too_many_columns_together() -> None:
    halves = [many(260, f"Half{j}") for j in range(2)]
    with pytest.raises(ValueError, match=r"more than 500 columns together, .*: avro.rows_by_type makes a table of"):
        together(*halves)


def _varint(number: int) -> bytes:
    result, number = b"", number << 1
    while number > 127:
        result, number = result + bytes([number & 127 | 128]), number >> 7
    return result + bytes([number])


def test_names_beyond_ascii() -> None:
    schema = record(field("größe", "int"), field("名前", "string"), name="Maß", namespace="läden.fr")
    assert rows_of(together(A, schema), [(0, b"\4"), (1, b"\2\2x")])[1] == {
        "a": None,
        "größe": 1,
        "名前": "x",
        "_error_": None,
    }
    assert list(typed_rows.by_name(schemas_of([schema]))) == ["läden.fr.Maß"]
    for name in ("1a", "a b", "a-b", "", "½"):
        with pytest.raises(ValueError, match=r"has a field without a type or a unique name"):
            together(record(field(name, "int")))


# ---------------------------------------------------------------- schemas that are not records


def test_schemas_that_are_not_records() -> None:
    reader = together("string", A)
    assert rows_of(reader, [(0, b"\4hi"), (1, b"\4"), (0, b"\2")]) == [
        {"value": "hi", "a": None, "_error_": None},
        {"value": None, "a": 2, "_error_": None},
        {"value": None, "a": None, "_error_": "TRUNCATED"},
    ]
    tables = typed_rows.by_name(schemas_of({0: "string", 1: A, 2: ["null", A], 3: {"type": "array", "items": "int"}}))
    assert list(tables) == ["string", "A", "array"]
    assert rows_of(tables["A"], [(1, b"\4"), (2, b"\2\6"), (2, b"\0")]) == [
        {"a": 2, "_error_": None},
        {"a": 3, "_error_": None},
        {"a": None, "_error_": None},
    ]
    assert rows_of(typed_rows.reader(schemas_of({0: "int"}), "long"), [(0, b"\4")]) == [{"value": 2, "_error_": None}]
    assert type_name(parse(["null", enum("A")])) == "E"


def test_confluents_bytes_have_no_size() -> None:
    schemas = schemas_of({1: "bytes", 2: A})
    for reader in (typed_rows.reader(schemas, framed=False), typed_rows.by_name(schemas, framed=False)["bytes"]):
        for data in (b"", b"\4", b"any bytes at all"):
            assert rows_of(reader, [(1, data)])[0]["value"] == data
    assert rows_of(typed_rows.reader(schemas_of({1: "bytes"})), [(1, b"\2x")])[0]["value"] == b"x"
    assert rows_of(typed_rows.reader(schemas_of({1: "bytes"}), "string", framed=False), [(1, b"\xff")])[0] == {
        "value": None,
        "_error_": "BAD_FIELD: value",
    }


# ---------------------------------------------------------------- names


def test_names_that_spark_does_not_distinguish() -> None:
    inner = record(field("x", "int"), field("X", "int"), name="Inner")
    schema = record(
        field("id", "int"), field("ID", "int"), field("Id_2", "int"), field("in", inner), field("_error_", "string")
    )
    [row] = rows_of(together(schema), [(0, b"\2\4\6\x08\x0a\2e")])
    assert row == {"id": 1, "ID_3": 2, "Id_2": 3, "in": {"x": 4, "X_2": 5}, "_error__2": "e", "_error_": None}
    value = {"id": 1, "ID": 2, "Id_2": 3, "in": {"x": 4, "X": 5}, "_error_": "e"}
    assert to_python(b"\2\4\6\x08\x0a\2e", schema) == value
    assert typed(schema).type.field(1).name == "ID_3"


def test_columns_of_datahub_that_spark_does_not_distinguish() -> None:
    types = {"id": column_type("LONG"), "ID": column_type("STRING"), "Id": column_type("DOUBLE")}
    assert row_schema(types).names[6:9] == ["id", "ID_2", "Id_3"]
    assert row_schema(types).field("ID_2").type == pa.string()


# ---------------------------------------------------------------- one bad field


TIME = logical("long", "timestamp-millis")
ODD = record(
    field("id", "int"),
    field("note", "string"),
    field("at", TIME),
    field("price", decimal(3, 1)),
    field("tags", {"type": "map", "values": "string"}),
    field("lines", {"type": "array", "items": record(field("ok", "boolean"), field("d", ["null", TIME]), name="L")}),
    field("last", "long"),
    name="Odd",
)
GOOD_TAGS, GOOD_LINES = b"\2\2k\2v\0", b"\2\1\0\0".replace(b"\1", b"\x01")


def odd(
    id: bytes = b"\2",
    note: bytes = b"\2n",
    at: bytes = b"\0",
    price: bytes = b"\2\x05",
    tags: bytes = GOOD_TAGS,
    lines: bytes = GOOD_LINES,
) -> bytes:
    """A datum with these fields."""
    return id + note + at + price + tags + lines + b"\x12"


FAR = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
BAD_FIELDS = [
    (odd(id=b"\xfe\xff\xff\xff\x7f"), {"id": None}, "BAD_FIELD: id"),
    (odd(note=b"\4\xc3\x28"), {"note": None}, "BAD_FIELD: note"),
    (odd(at=FAR), {"at": None}, "BAD_FIELD: at"),
    (odd(price=b"\4\x7f\xff"), {"price": None}, "BAD_FIELD: price"),
    (odd(price=b"\0"), {"price": None}, "BAD_FIELD: price"),
    (odd(tags=b"\2\2k\2\xff\0"), {"tags": {"k": None}}, "BAD_FIELD: tags[]"),
    (odd(tags=b"\2\2\xff\2v\0"), {"tags": None}, "BAD_FIELD: tags[]"),
    (
        odd(lines=b"\4\7\0\1\2\0\0"),
        {"lines": [{"ok": None, "d": None}, {"ok": True, "d": "epoch"}]},
        "BAD_FIELD: lines[].ok",
    ),
    (odd(lines=b"\2\1\2" + FAR + b"\0"), {"lines": [{"ok": True, "d": None}]}, "BAD_FIELD: lines[].d"),
    (odd(note=b"\2\xff", at=FAR), {"note": None, "at": None}, "BAD_FIELD: note, at"),
]


@pytest.mark.parametrize(
    ("data", "bad", "error"), BAD_FIELDS, ids=[f"{k} {case[2]}" for k, case in enumerate(BAD_FIELDS)]
)
def test_one_bad_field_is_null_and_the_others_stay(data: bytes, bad: dict[str, Any], error: str) -> None:
    [before, row, after] = rows_of(together(ODD), [(0, odd()), (0, data), (0, odd())])
    assert before == after
    assert before["_error_"] is None
    epoch = before["at"]
    expected = json.loads(
        json.dumps(bad), object_hook=lambda o: {k: epoch if v == "epoch" else v for k, v in o.items()}
    )
    assert row == {**before, **expected, "_error_": error}
    with pytest.raises(ValueError, match=rf"cannot be read: {error}$".replace("[", r"\[").replace("]", r"\]")):
        to_python(data, ODD)


def test_many_bad_fields_in_many_rows() -> None:
    rows = [(0, odd(note=b"\2\xff", at=FAR) if k % 2 else odd()) for k in range(2000)]
    result = rows_of(together(ODD), rows)
    assert [row["_error_"] for row in result] == [None, "BAD_FIELD: note, at"] * 1000
    assert [row["last"] for row in result] == [9] * 2000


def test_bad_fields_of_a_row_that_is_truncated_or_has_a_bad_branch() -> None:
    [cut, branch] = rows_of(together(ODD), [(0, odd(note=b"\2\xff")[:-3]), (0, odd(lines=b"\2\1\x08\0\0"))])
    assert {name for name, value in cut.items() if value is not None} == {"_error_"}
    assert (cut["_error_"], branch["_error_"]) == ("BAD_FIELD: note", "BAD_FIELD: lines[].d")


# ---------------------------------------------------------------- defaults


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_defaults_that_are_no_json_numbers(kind: str, text: str) -> None:
    reader = record(
        field("a", "int"), field("x", kind, default=text), field("y", ["null", kind], default=None), name="A"
    )
    result = typed_rows.by_name(schemas_of({0: A, 1: reader}))["A"]
    [row] = rows_of(result, [(0, b"\4")])
    assert str(row["x"]) == str(float(text.replace("Infinity", "inf")))
    assert str(to_python(b"\4", A, reader)["x"]) == str(row["x"])


@pytest.mark.parametrize("default", ["INF", 10**400, True, None, "1"])
def test_defaults_that_are_no_number(default: Any) -> None:
    for kind in ("float", "double"):
        with pytest.raises(ValueError, match=f"^the default of x is no {kind}: "):
            typed(A, record(field("x", kind, default=default), name="A"))


def test_a_default_of_the_last_version_is_converted_like_its_values() -> None:
    older = record(field("d", decimal(10, 4)), field("t", logical("long", "timestamp-micros")), name="A")
    last = record(
        field("d", decimal(5, 2), default="\x04\xd2"),
        field("t", logical("long", "timestamp-millis"), default=1700000000123),
        field("e", "int", default=7),
        name="A",
    )
    never = record(name="A")
    result = typed_rows.by_name(schemas_of({0: never, 1: older, 2: last}))["A"]
    [row] = rows_of(result, [(0, b"")])
    assert (row["d"], row["t"].timestamp(), row["e"]) == (Decimal("12.3400"), 1700000000.123, 7)


# ---------------------------------------------------------------- folders


def test_files_with_an_id_as_their_name(tmp_path: Path) -> None:
    for id in (1, 27):
        (tmp_path / f"{id}.avsc").write_text(json.dumps(record(field(f"f{id}", "int"), name=f"R{id}")))
    registry = Registry.of(tmp_path)
    reader = typed_rows.reader(registry.schemas([]))
    columns, errors = reader.rows(payloads.of_confluent(pa.array([b"\0\0\0\0\x1b\4", b"\0\0\0\0\1\6"])))
    assert errors.null_count == 2
    assert {f.name: c.to_pylist() for f, c in zip(reader.fields, columns, strict=True)} == {
        "f1": [None, 3],
        "f27": [2, None],
    }


def test_an_invalid_registry_gives_a_clear_error() -> None:
    for given in (5, 1.5, None):
        with pytest.raises(
            TypeError, match=r"^schemas is a Registry, a folder of \.avsc files, a list of schemas or a mapping"
        ):
            schemas_of(given)  # type: ignore[arg-type]


def test_a_folder_of_several_types_points_to_rows_by_type() -> None:
    schemas = schemas_of([A, record(field("a", "int"), name="B"), "string"])
    with pytest.raises(
        ValueError, match=r"^the folder has schemas of B, string, which .* record A: avro.rows_by_type makes"
    ):
        typed_rows.check_one_type(schemas, A)
    typed_rows.check_one_type(schemas_of([A, record(name="A")]), A)


def test_a_pipe_in_a_folder_of_schemas_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "2.avsc")
    (tmp_path / "1.avsc").write_text('"long"')
    assert len(_files(tmp_path)) == 1
