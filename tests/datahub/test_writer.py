"""Written messages, read again."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwire import FUNCTIONS
from tests.support import datahub_messages
from tests.support.arrow import enlarged, plain
from tests.support.datahub_cases import samples

CHANGE = FUNCTIONS["datahub_change"].return_type
VERDICTS = ("error", "is_valid")


def change(blobs: Sequence[bytes | None]) -> pa.StructArray:
    return FUNCTIONS["datahub_change"].decode(pa.array(blobs, pa.binary()))


def write(changes: Sequence[Mapping[str, Any] | None]) -> list[Any]:
    """The messages of ``to_datahub_blob`` for STRUCTs with the fields of these dicts."""
    names = dict.fromkeys(name for fields in changes for name in fields or ())
    type = pa.struct([CHANGE.field(name) for name in names])
    return plain(FUNCTIONS["to_datahub_blob"].decode(pa.array(changes, type)))


def read_back(changes: pa.StructArray) -> pa.StructArray:
    written = FUNCTIONS["to_datahub_blob"].decode(changes)
    written.validate(full=True)
    assert all(json.loads(blob) for blob in written.drop_null().to_pylist())
    return FUNCTIONS["datahub_change"].decode(written)


def only(changes: pa.StructArray, names: Sequence[str]) -> pa.StructArray:
    fields = dict(zip((field.name for field in changes.type), changes.flatten(), strict=True))
    return pa.StructArray.from_arrays([fields[name] for name in names], names)


# -- what was read


def test_the_samples_round_trip() -> None:
    blobs = [case.data for case in samples()]
    changes = change(blobs)
    assert len(blobs) == 6
    assert read_back(changes).equals(changes)
    for blob, written in zip(blobs, FUNCTIONS["to_datahub_blob"].decode(changes).to_pylist(), strict=True):
        assert json.loads(written) == json.loads(blob)
        assert list(json.loads(written)["payload"]) == list(json.loads(blob)["payload"])


def some_messages(seed: int, n: int) -> list[bytes]:
    chance = random.Random(seed)
    return [datahub_messages.message(chance) for _ in range(n)]


def test_odd_messages_round_trip() -> None:
    """Messages with any field odd or missing: every result is read again, except the errors of the first message."""
    changes = change(some_messages(1, 3000))
    intact = changes.field("is_valid")
    assert pc.sum(intact).as_py() > 500
    again = read_back(changes)
    names = [field.name for field in CHANGE if field.name not in VERDICTS]
    for name in names:
        assert again.field(name).equals(changes.field(name)), name
    assert again.filter(intact).equals(changes.filter(intact))


def test_images_from_their_maps() -> None:
    changes = change(some_messages(2, 3000))
    names = ["op", "columns", "before_map", "after_map"]
    again = read_back(only(changes, names))
    for name in names:
        assert again.field(name).equals(changes.field(name)), name


# -- what was made up

texts = st.none() | st.text(max_size=12)
times = st.none() | st.integers(-(2**63), 2**63 - 1)
moments = st.none() | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
images = st.none() | st.dictionaries(st.text(max_size=5), values, max_size=4).map(json.dumps)
made_up = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["INSERT", "DELETE", "ALTER", "odd"]) | texts,
        **dict.fromkeys(("sequence_id", "db_type", "db_version", "database", "schema_name", "table"), texts),
        **dict.fromkeys(("ddl_text", "version"), texts),
        **dict.fromkeys(("event_time_ms", "system_time_ms", "checkpoint_time_ms"), times),
        "primary_key": st.none() | st.lists(texts, max_size=3),
        "columns": st.none() | st.lists(st.none() | st.fixed_dictionaries({"name": texts, "type": texts}), max_size=3),
        "before": images,
        "after": images,
        "ddl_meta": st.none() | st.binary(max_size=10),
    }
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(made_up, min_size=1, max_size=4), st.sets(st.sampled_from(sorted(f.name for f in CHANGE))))
def test_any_fields_round_trip(rows: list[dict[str, Any]], names: set[str]) -> None:
    rows = [{name: value for name, value in row.items() if name in names | {"op"}} for row in rows]
    for row, got in zip(rows, plain(change(write(rows))), strict=True):
        assert {name: got[name] for name in row} == {**row, **kept_images(row)}


def kept_images(row: Mapping[str, Any]) -> dict[str, Any]:
    """The given images, for ``before`` and ``after`` that exist."""
    return {name: row[name] for name in ("before", "after") if name in row}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.fixed_dictionaries({"event_time": moments}), min_size=1, max_size=5))
def test_timestamps_are_rounded_toward_the_past(rows: list[dict[str, Any]]) -> None:
    given_times = [row["event_time"] for row in rows]
    array = pa.StructArray.from_arrays([pa.array(given_times, CHANGE.field("event_time").type)], ["event_time"])
    got = change(FUNCTIONS["to_datahub_blob"].decode(array).to_pylist())
    assert got.field("event_time_ms").to_pylist() == [None if t is None else t // 1000 for t in given_times]


def test_milliseconds_take_precedence_over_a_timestamp() -> None:
    [blob] = write([{"system_time_ms": 7, "system_time": 5_000_000}])
    assert blob == b'{"schema":{},"payload":{"timestamp":{"systemTime":7}}}'


# -- rules


@pytest.mark.parametrize(
    ("operation", "op"),
    [
        ("INSERT", "INSERT"),
        ("UPDATE_BEFORE", "UPDATE_BEFOR"),
        ("UPDATE_AFTER", "UPDATE_AFTER"),
        ("DELETE", "DELETE"),
        ("HEARTBEAT", "MHEARTBEAT"),
    ],
)
def test_an_operation_means_its_op(operation: str, op: str) -> None:
    [blob, other] = write([{"operation": operation}, {"operation": "DDL", "op": "ALTER"}])
    assert json.loads(blob)["payload"] == {"op": op}
    assert json.loads(other)["payload"] == {"op": "ALTER"}


def test_the_text_is_compact_and_in_the_order_of_the_samples() -> None:
    [blob] = write(
        [
            {
                "version": "0.0.1",
                "op": "DELETE",
                "before": '{ "id" : 1 }',
                "columns": [{"name": "id", "type": "LONG"}, None, {"name": None, "type": None}],
                "primary_key": ["id", None],
                "table": 't"\\\n\x01é😀',
                "ddl_meta": b"\x00\xff",
                "event_time_ms": -5,
            }
        ]
    )
    assert blob.decode() == (
        '{"schema":{"dataColumn":[{"name":"id","type":"LONG"},null,{}],"source":{"tableName":'
        '"t\\"\\\\\\n\\u0001é\\uD83D\\uDE00"},"primaryKey":["id",null]},"payload":{"op":"DELETE",'
        '"before":{"dataColumn":{ "id" : 1 }},"ddl":{"ddlMeta":"AP8="},"timestamp":{"eventTime":-5}},"version":"0.0.1"}'
    )


def test_nothing_given() -> None:
    assert write([{"op": None}, None, {"op": ""}]) == [
        b'{"schema":{},"payload":{}}',
        None,
        b'{"schema":{},"payload":{"op":""}}',
    ]
    function = FUNCTIONS["to_datahub_blob"]
    assert plain(function.decode(pa.nulls(2))) == [None, None]
    assert write([]) == []


def test_maps_are_typed_by_the_columns() -> None:
    types: dict[str, str] = {"n": "LONG", "x": "DOUBLE", "b": "BOOLEAN", "d": "DATE", "s": "STRING"}
    columns = [{"name": name, "type": type} for name, type in types.items()]
    members: dict[str, list[str | None]] = {
        "n": ["12345678901234567890", "1e5", "-0", "01", "", " 1", "1\n", "NaN", "+1", "a", None],
        "x": ["1.50", "1.", ".5"],
        "b": ["true", "True"],
        "d": ["2020-02-29T12:00:00.123Z", "2020-02-30T12:00:00.123Z", "1605339932000", "0001-01-01T00:00:00.000Z"],
        "s": ["1", "true"],
        "other": ["1"],
    }
    rows = [(name, text) for name, all_texts in members.items() for text in all_texts]
    blobs = write([{"columns": columns, "after_map": [row]} for row in rows])
    bare = [json.loads(blob)["payload"]["after"]["dataColumn"] for blob in blobs]
    expected: dict[tuple[str, str | None], Any] = {
        ("n", "12345678901234567890"): 12345678901234567890,
        ("n", "1e5"): 1e5,
        ("n", "-0"): 0,
        ("x", "1.50"): 1.5,
        ("b", "true"): True,
        ("d", "2020-02-29T12:00:00.123Z"): 1582977600123,
        ("d", "1605339932000"): 1605339932000,
        ("d", "0001-01-01T00:00:00.000Z"): -62135596800000,
    }
    assert bare == [{name: expected.get((name, text), text)} for name, text in rows]
    # After reading, a map has the same texts; a DATE in milliseconds becomes the instant.
    again = [fields["after_map"][0][1] for fields in plain(change(blobs))]
    assert again == [text if text != "1605339932000" else "2020-11-14T07:45:32.000Z" for _, text in rows]


def test_a_text_takes_precedence_over_its_map() -> None:
    rows: list[dict[str, Any]] = [
        {"before": '{"a":1}', "before_map": [("a", "2")]},
        {"before": None, "before_map": [("a", "2"), ("b", None)]},
        {"before": None, "before_map": []},
        {"before": None, "before_map": None},
    ]
    images = [fields["before"] for fields in plain(change(write(rows)))]
    assert images == ['{"a":1}', '{"a":"2","b":null}', "{}", None]


def test_a_slice() -> None:
    changes = change([*some_messages(3, 60), None])
    for names in ([field.name for field in CHANGE], ["after_map", "columns"]):
        some = only(changes, names)
        whole = FUNCTIONS["to_datahub_blob"].decode(some)
        assert FUNCTIONS["to_datahub_blob"].decode(some[7:40]).equals(whole[7:40])
        one_by_one = [FUNCTIONS["to_datahub_blob"].decode(some[k : k + 1])[0] for k in range(0, 61, 6)]
        assert one_by_one == [whole[k] for k in range(0, 61, 6)]


def test_large_types() -> None:
    changes = change(some_messages(4, 60))
    for names in ([field.name for field in CHANGE], ["after_map", "columns"]):
        some = only(changes, names)
        assert FUNCTIONS["to_datahub_blob"].decode(enlarged(some)).equals(FUNCTIONS["to_datahub_blob"].decode(some))


def test_bytes_that_are_not_utf_8() -> None:
    table = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb")])
    [blob] = FUNCTIONS["to_datahub_blob"].decode(pa.StructArray.from_arrays([table], ["table"])).to_pylist()
    assert json.loads(blob)["schema"]["source"]["tableName"] == "a\ufffdb"


# -- what is rejected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"before": "abc"}, "before as the text of a JSON object, got 'abc'"),
        ({"after": "[1]"}, "after as the text of a JSON object, got '[1]'"),
        ({"after": "null"}, "after as the text of a JSON object, got 'null'"),
        ({"after": ""}, "after as the text of a JSON object, got ''"),
        ({"after": '{"a":1} {}'}, "after as the text of a JSON object, got '{\"a\":1} {}'"),
        ({"after": "\ufeff{}"}, r"after as the text of a JSON object, got '\ufeff{}'"),
        ({"after": "x" * 50}, f"after as the text of a JSON object, got '{'x' * 40}…'"),
        (
            {"operation": "DDL"},
            "operation DELETE, HEARTBEAT, INSERT, UPDATE_AFTER or UPDATE_BEFORE without op, got 'DDL'",
        ),
        (
            {"operation": "insert"},
            "operation DELETE, HEARTBEAT, INSERT, UPDATE_AFTER or UPDATE_BEFORE without op, got 'insert'",
        ),
    ],
)
def test_values_that_cannot_be_written_are_a_clear_error(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^to_datahub_blob") as rejected:
        write([{}, fields, None])
    assert str(rejected.value) == f"to_datahub_blob() expected {sentence}"


def test_unknown_fields_are_an_error() -> None:
    with pytest.raises(
        TypeError, match=r"^to_datahub_blob\(\) expected change with the fields op, operation, .*, got position$"
    ):
        FUNCTIONS["to_datahub_blob"].decode(pa.array([{"op": "INSERT", "position": 1}]))
    with pytest.raises(TypeError, match=r"^to_datahub_blob\(\) expected change\.event_time_ms BIGINT, got STRING$"):
        FUNCTIONS["to_datahub_blob"].decode(pa.array([{"event_time_ms": "1"}]))
