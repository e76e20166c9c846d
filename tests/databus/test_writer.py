"""`to_dbus_event`: the same bytes as Databus, with the given fields, or a clear error."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkwire import FUNCTIONS
from sparkwire.kernels import CHECKED
from tests.support.arrow import ask
from tests.support.child import run_python
from tests.support.databus_cases import golden_events
from tests.support.databus_damage import damaged_rows, golden_rows, mutants
from tests.support.databus_json_cases import golden
from tests.support.guard import guarded_column

WRITE = FUNCTIONS["to_dbus_event"]
FIELDS: Any = FUNCTIONS["dbus_event"].return_type

# Sound golden events that do not come back as they were, and why.
NOT_CANONICAL = {
    "crafted: payload flag cleared although part present": "no field shows the part that is not announced",
}

LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
SHORT = st.integers(-(2**15), 2**15 - 1)
PART_VERSION = st.integers(-(2**13), 2**13 - 1)
DATA = st.binary(max_size=200)
MD5 = st.binary(min_size=16, max_size=16)
DIGEST = st.one_of(MD5, st.binary(min_size=4, max_size=4))


def write(*events: dict[str, Any] | None) -> list[bytes | None]:
    """Events with these fields, from one column that has all of them."""
    names = [field.name for field in FIELDS if any(event and field.name in event for event in events)]
    types = pa.struct([FIELDS.field(name) for name in names] or [FIELDS.field("version")])
    column = WRITE.decode(pa.array(events, types))
    column.validate(full=True)
    answers: list[bytes | None] = column.to_pylist()
    return answers


def fields_of(rows: list[bytes] | list[bytes | None]) -> Any:
    """A column of STRUCTs, as `dbus_event` returns it."""
    return FUNCTIONS["dbus_event"].decode(pa.array(rows, pa.binary()))


def read(event: bytes | None) -> dict[str, Any]:
    [answers] = ask("dbus_event", [event])
    assert answers["error"] is None
    assert isinstance(answers, dict)
    return answers


# -- what was read is written again


def test_golden_events_round_trip() -> None:
    events = list(golden())
    column = fields_of([event.event for event in events])
    changed = [
        event.name.partition(": ")[2]
        for event, again in zip(events, WRITE.decode(column).to_pylist(), strict=True)
        if event.event != again
    ]
    assert changed == 2 * list(NOT_CANONICAL)  # one in either byte order


def test_bytes_outside_of_fields_are_omitted() -> None:
    for file in ("events_v1_le", "events_v2_be"):
        _, event = next(golden_events(file))
        column = fields_of([event + b"left over"])
        assert WRITE.decode(column).to_pylist() == [event]


def test_corrupt_events_become_valid() -> None:
    """From the fields that can be read, if the version is known."""
    rows = [row for row in [*damaged_rows(), *mutants(seed=11, count=3000)] if row[:1] in (b"\0", b"\2")]
    written = WRITE.decode(fields_of(rows))
    assert set(ask("dbus_error", written.to_pylist())) == {None}
    for name in ("dbus_sequence", "dbus_key_bytes", "dbus_value", "dbus_metadata"):
        for was, now in zip(ask(name, rows), ask(name, written.to_pylist()), strict=True):
            assert was is None or was == now


def test_stored_fields_are_enough() -> None:
    """Without derived fields, sizes, checksums and verdicts, the event is the same."""
    reported = {
        "opcode",
        "is_trace",
        "is_replicated",
        "key_type",
        "is_end_of_period",
        "timestamp",
        "source_range",
        "event_type",
    }
    ignored = {"length", "value_size", "status", "error", "is_valid", "key"}
    ignored |= {f"{crc}_crc{ending}" for crc in ("header", "value") for ending in ("", "_computed", "_valid")}
    rows = golden_rows()
    column = fields_of(rows)
    kept = [field.name for field in FIELDS if field.name not in reported | ignored]
    less = pa.StructArray.from_arrays([column.field(name) for name in kept], kept)
    assert WRITE.decode(less).equals(WRITE.decode(column))


@pytest.mark.parametrize("seed", range(6))
def test_any_subset_of_the_fields(seed: int) -> None:
    """The given fields are read again, for any missing fields; an impossible event is an error."""
    chance = random.Random(seed)
    column = fields_of(golden_rows()[seed::11])
    written = 0
    for event in column.to_pylist():
        names = chance.sample(GIVEN_BACK, chance.randrange(len(GIVEN_BACK)))
        subset = {name: event[name] for name in {*names, "version"}}
        again = written_or_refused(subset)
        if again is None:
            continue
        answers = read(again)
        expected = {name: value for name, value in subset.items() if value is not None}
        got = {name: answers[name] for name in expected}
        if "attributes" in expected and event["version"] == 2:
            got["attributes"] |= 0xC0  # the parts determine these bits
            expected["attributes"] |= 0xC0
        if "attributes" in expected:  # they take precedence
            got |= {name: expected[name] for name in TOLD_BY_ATTRIBUTES & set(expected)}
        assert {k: v for k, v in got.items() if k != "timestamp"} == {
            k: v for k, v in expected.items() if k != "timestamp"
        }
        written += 1
    assert written > 30


def written_or_refused(fields: dict[str, Any]) -> bytes | None:
    try:
        return write(fields)[0]
    except ValueError as rejection:
        if not str(rejection).startswith("to_dbus_event() expected "):
            raise
        return None


TOLD_BY_ATTRIBUTES = {"opcode", "is_trace", "is_replicated", "key_type"}
GIVEN_BACK = [
    *("attributes", "opcode", "is_trace", "is_replicated", "key_type", "is_end_of_period", "sequence", "src_id"),
    *("physical_partition_id", "logical_partition_id", "timestamp_nanos", "event_type", "schema_id"),
    *("key", "key_long", "key_bytes", "value", "metadata", "metadata_schema_id", "metadata_schema_version"),
    *("key_schema_id", "key_schema_version", "byte_order"),
]


# -- random fields


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Fields that an event can hold, as `dbus_event` returns them."""
    version = draw(st.sampled_from((0, 2)))
    key_type = draw(st.sampled_from(("LONG", "BYTES") if version == 0 else ("LONG", "BYTES", "SCHEMA")))
    event: dict[str, Any] = {
        "version": version,
        "byte_order": draw(st.sampled_from(("BIG_ENDIAN", "LITTLE_ENDIAN"))),
        "opcode": draw(st.sampled_from((None, "UPSERT", "DELETE"))),
        "is_trace": draw(st.booleans()),
        "is_replicated": draw(st.booleans()),
        "key_type": key_type,
        "sequence": draw(LONG),
        "timestamp_nanos": draw(LONG),
        "physical_partition_id": draw(SHORT),
    }
    event |= {"key_long": draw(LONG)} if key_type == "LONG" else {"key_bytes": draw(DATA)}
    if version == 0:
        return event | {
            "logical_partition_id": draw(SHORT),
            "src_id": draw(SHORT),
            "schema_id": draw(MD5),
            "value": draw(DATA),
        }
    event |= {"logical_partition_id": event["physical_partition_id"], "src_id": draw(INT)}
    if key_type == "SCHEMA":
        event |= {"key_schema_id": draw(DIGEST), "key_schema_version": draw(PART_VERSION)}
    if draw(st.booleans()):
        event |= {"value": draw(DATA), "schema_id": draw(DIGEST), "schema_version": draw(PART_VERSION)}
    if draw(st.booleans()):
        event |= {"metadata": draw(DATA), "metadata_schema_id": draw(DIGEST)}
        event |= {"metadata_schema_version": draw(PART_VERSION)}
    return event


@given(st.lists(events(), min_size=1, max_size=8))
def test_random_fields(fields: list[dict[str, Any]]) -> None:
    """The written fields are read again, and missing fields are missing; writing all fields again gives the same bytes."""
    written = write(*fields)
    answers = ask("dbus_event", written)
    for event, got, data in zip(fields, answers, written, strict=True):
        assert got["error"] is None
        assert {name: got[name] for name in event} == event
        assert got["length"] == len(data or b"")
        for name in ("key_long", "key_bytes", "key_schema_id", "value", "metadata", "metadata_schema_id"):
            assert event.get(name) == got[name]
    assert WRITE.decode(fields_of(written)).to_pylist() == written


# -- defaults


def test_only_zeros() -> None:
    [event] = write({"version": None})
    assert event is not None
    assert len(event) == 61
    answers = read(event)
    assert (answers["version"], answers["byte_order"], answers["attributes"], answers["key"]) == (
        0,
        "BIG_ENDIAN",
        0,
        "0",
    )
    assert (answers["schema_id"], answers["value"], answers["src_id"]) == (bytes(16), b"", 0)


def test_the_kind_of_key_follows_from_its_fields() -> None:
    def kind(**fields: Any) -> tuple[str, str]:
        answers = read(write({"version": 2, **fields})[0])
        return answers["key_type"], answers["key"]

    assert kind(key_long=7) == ("LONG", "7")
    assert kind(key="7") == ("BYTES", "7")
    assert kind(key_bytes=b"abc") == ("BYTES", "abc")
    assert kind(key_schema_version=3) == ("SCHEMA", "")
    assert kind(key_schema_id=b"1234", key="abc") == ("SCHEMA", "abc")
    assert kind(key_type="LONG", key="-12") == ("LONG", "-12")
    assert kind(key_type="SCHEMA") == ("SCHEMA", "")
    assert kind(key_type="BYTES") == ("BYTES", "")
    assert kind(key_type="BYTES", key="7", key_bytes=b"8") == ("BYTES", "8")
    assert kind(attributes=0b0100, key_type="BYTES", key="-9223372036854775808") == ("LONG", "-9223372036854775808")
    assert kind(attributes=0b1000, key_type="LONG", key="é") == ("BYTES", "é")


def test_attributes_take_precedence() -> None:
    event = {"attributes": 0x8105, "opcode": "DELETE", "is_trace": False, "is_replicated": False, "key_type": "LONG"}
    answers = read(write(event)[0])
    assert (answers["attributes"], answers["opcode"]) == (0x8105, "UPSERT")
    assert (answers["is_trace"], answers["is_replicated"]) == (True, True)
    # Only the bits of parts follow from the parts.
    assert read(write({"version": 2, "attributes": 0xC4, "value": None})[0])["attributes"] == 0x04
    assert read(write({"version": 2, "attributes": 0x04, "metadata": b""})[0])["attributes"] == 0x44


def test_schema_id_takes_precedence_over_the_version() -> None:
    assert read(write({"schema_id": b"0123456789abcdef", "schema_version": 7})[0])["schema_id"] == b"0123456789abcdef"
    for order, stored in (("BIG_ENDIAN", b"\0\7"), ("LITTLE_ENDIAN", b"\7\0")):
        answers = read(write({"schema_version": 7, "byte_order": order})[0])
        assert (answers["schema_version"], answers["schema_id"]) == (7, stored + bytes(14))


def test_a_part_exists_if_it_has_data_or_a_schema() -> None:
    for given_fields in ({"value": b""}, {"schema_version": 0}, {"schema_id": bytes(16)}):
        answers = read(write({"version": 2, **given_fields})[0])
        assert (answers["value"], answers["schema_id"], answers["schema_version"]) == (b"", bytes(16), 0)
        assert answers["metadata"] is None
    answers = read(write({"version": 2, "metadata_schema_version": -1})[0])
    assert (answers["metadata"], answers["value"]) == (b"", None)


def test_derived_source_and_time() -> None:
    assert read(write({"is_end_of_period": True})[0])["src_id"] == -2
    assert read(write({"event_type": "CHECKPOINT"})[0])["src_id"] == -3
    assert read(write({"event_type": "SCN_REGRESS", "source_range": "GLOBAL_SYSTEM"})[0])["src_id"] == -51
    assert read(write({"event_type": "CHECKPOINT", "src_id": 9})[0])["src_id"] == 9
    time = datetime.datetime(2014, 5, 13, 16, 53, 20, 123456, datetime.UTC)
    assert read(write({"timestamp": time})[0])["timestamp_nanos"] == 1_400_000_000_123_456_000
    assert read(write({"timestamp": time, "timestamp_nanos": 1})[0])["timestamp_nanos"] == 1
    long_ago = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
    assert read(write({"timestamp": long_ago, "timestamp_nanos": -1})[0])["timestamp_nanos"] == -1


@pytest.mark.parametrize("bound", [-(2**63 // 1000), (2**63 - 1) // 1000])
def test_the_first_and_the_last_microsecond_of_a_bigint_of_nanoseconds(bound: int) -> None:
    types = pa.struct([("timestamp", pa.timestamp("us", "UTC"))])
    column = pa.array([{"timestamp": bound}], types)
    assert ask("dbus_timestamp", WRITE.decode(column).to_pylist()) == [bound]
    beyond = bound + (1 if bound > 0 else -1)
    with pytest.raises(ValueError, match="a timestamp from 1677 to 2262"):
        WRITE.decode(pa.array([{"timestamp": beyond}], types))


def test_one_partition_in_v2() -> None:
    for fields in ({"physical_partition_id": 5}, {"logical_partition_id": 5}):
        answers = read(write({"version": 2, **fields})[0])
        assert (answers["physical_partition_id"], answers["logical_partition_id"]) == (5, 5)


def test_v2_without_a_kind_of_key() -> None:
    [event] = write({"version": 2, "attributes": 0})
    assert event is not None
    assert len(event) == 45
    assert read(event)["key_type"] is None


# -- columns


def test_nulls_slices_and_types() -> None:
    fields: list[Any] = [
        {"key_bytes": b"%d" % i, "value": b"v" * i, "sequence": i} if i % 3 else None for i in range(50)
    ]
    expected = write(*fields)
    assert [event is None for event in expected] == [i % 3 == 0 for i in range(50)]
    types = pa.struct([("key_bytes", pa.binary()), ("value", pa.binary()), ("sequence", pa.int64())])
    column = pa.array(fields, types)
    assert WRITE.decode(column[7:31]).to_pylist() == expected[7:31]
    narrow = pa.struct([("sequence", pa.int8()), ("value", pa.large_binary()), ("key_bytes", pa.large_binary())])
    assert WRITE.decode(pa.array(fields, narrow)).to_pylist() == expected
    texts: list[Any] = [
        fields and {**fields, "key_bytes": None, "key": fields["key_bytes"].decode()} for fields in fields
    ]
    for text in (pa.string(), pa.large_string()):
        for data in (pa.binary(), pa.large_binary()):
            with_text = pa.struct([("sequence", pa.int64()), ("value", data), ("key_bytes", data), ("key", text)])
            assert WRITE.decode(pa.array(texts, with_text)).to_pylist() == expected
    assert WRITE.decode(column[:0]).to_pylist() == []
    assert WRITE.decode(pa.nulls(2)).to_pylist() == [None, None]


def test_values_under_a_null_have_no_effect() -> None:
    versions, words = pa.array([7, 0], pa.int8()), pa.array(["FOO", "UPSERT"])
    column = pa.StructArray.from_arrays([versions, words], ["version", "opcode"], mask=pa.array([True, False]))
    assert WRITE.decode(column).to_pylist() == [None, *write({"opcode": "UPSERT"})]


def test_null_counts_as_missing() -> None:
    event = {"sequence": 5, "key_long": 6, "value": b"abc"}
    assert write({field.name: event.get(field.name) for field in FIELDS}) == write(event)


# -- what is rejected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"version": 1}, "version 0 or 2, got 1"),
        ({"byte_order": "MIDDLE"}, "byte_order BIG_ENDIAN or LITTLE_ENDIAN, got 'MIDDLE'"),
        ({"opcode": "INSERT"}, "opcode UPSERT or DELETE, got 'INSERT'"),
        ({"attributes": 65536}, "attributes from 0 to 65535, got 65536"),
        ({"src_id": 70000}, "src_id from -32768 to 32767 in V1, got 70000"),
        ({"event_type": "DATA"}, "src_id with an event_type or source_range of several ids, got NULL"),
        ({"source_range": "DATA"}, "src_id with an event_type or source_range of several ids, got NULL"),
        ({"schema_id": b"12345"}, "schema_id of 16 bytes, or of 4 in V2, got 5"),
        ({"schema_id": b"1234"}, "schema_id of 16 bytes, or of 4 in V2, got 4"),
        ({"version": 2, "metadata_schema_id": b""}, "metadata_schema_id of 16 bytes, or of 4 in V2, got 0"),
        ({"version": 2, "schema_version": 8192}, "schema_version from -8192 to 8191 in V2, got 8192"),
        ({"metadata": b"m"}, "metadata in V2, got some in V1"),
        ({"key_type": "SCHEMA"}, "a SCHEMA key in V2, got one in V1"),
        ({"key_type": "TEXT"}, "key_type LONG or BYTES or SCHEMA, got 'TEXT'"),
        ({"key_long": 1, "key_bytes": b"k"}, "key_long for a LONG key, got key_bytes"),
        ({"key_type": "BYTES", "key_long": 1}, "key_bytes for a BYTES key, got key_long"),
        ({"attributes": 8, "key_long": 1}, "key_bytes for a BYTES key, got key_long"),
        ({"version": 2, "attributes": 1, "key": "k"}, "no key with attributes that have none, got key"),
        (
            {"version": 2, "key_type": "LONG", "key_schema_version": 1},
            "key_long for a LONG key, got key_schema_id or key_schema_version",
        ),
        ({"key_type": "LONG", "key": "12x"}, "a LONG key in decimal, got '12x'"),
        ({"key_type": "LONG", "key": "9223372036854775808"}, "a LONG key in decimal, got '9223372036854775808'"),
        ({"key_type": "LONG", "key": ""}, "a LONG key in decimal, got ''"),
        (
            {"version": 2, "physical_partition_id": 1, "logical_partition_id": 2},
            "one partition id in V2, got a physical and another logical one",
        ),
        (
            {"timestamp": datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)},
            "a timestamp from 1677 to 2262, got 0001-01-01 00:00:00+00:00",
        ),
    ],
)
def test_values_that_an_event_cannot_hold(fields: dict[str, Any], sentence: str) -> None:
    names = list(fields)
    types = pa.struct(
        [(name, pa.int32() if isinstance(fields[name], int) else FIELDS.field(name).type) for name in names]
    )
    intact = {"version": fields.get("version", 0)} if "version" in names else {}
    with pytest.raises(ValueError, match="to_dbus_event") as rejected:
        WRITE.decode(pa.array([None, intact, fields], types))
    assert str(rejected.value) == f"to_dbus_event() expected {sentence}"


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.array([{"sequence": "5"}]), "event.sequence BIGINT, got STRING"),
        (pa.array([{"sequence": 5.0}]), "event.sequence BIGINT, got DOUBLE"),
        (pa.array([{"value": "text"}]), "event.value BINARY, got STRING"),
        (pa.array([{"is_trace": 1}]), "event.is_trace BOOLEAN, got BIGINT"),
        (pa.array([{"timestamp": 5}]), "event.timestamp TIMESTAMP, got BIGINT"),
        (pa.array([b"event"]), "(event STRUCT), got (BINARY)"),
        (pa.array([[{"sequence": 5}]]), "(event STRUCT), got (ARRAY<STRUCT<sequence BIGINT>>)"),
    ],
)
def test_wrong_types(column: pa.Array[Any], sentence: str) -> None:
    with pytest.raises(TypeError, match="to_dbus_event") as rejected:
        WRITE.decode(column)
    assert str(rejected.value) == f"to_dbus_event() expected {sentence}"


def test_unknown_field() -> None:
    with pytest.raises(
        TypeError, match=r"^to_dbus_event\(\) expected event with the fields version, .*, is_valid, got scn$"
    ):
        WRITE.decode(pa.array([{"scn": 5}]))


# -- through Spark


def test_sql(spark: SparkSession) -> None:
    rows = [(i, bytearray(event)) for i, event in enumerate(golden_rows()[::9])]
    spark.createDataFrame(rows, "id INT, event BINARY").createOrReplaceTempView("written_events")
    query = """
        SELECT count(*) AS events,
               count_if(to_dbus_event(dbus_event(event)) = event) AS same,
               count_if(dbus_version(event) = 0) AS v1,
               count_if(dbus_to_json(dbus_from_json(dbus_to_json(event))) = dbus_to_json(event)) AS same_texts
        FROM written_events"""
    [result] = spark.sql(query).collect()
    assert result.events == len(rows)
    assert result.events - result.same <= 2 * len(NOT_CANONICAL)
    assert result.same_texts == result.v1 > 0
    built = "to_dbus_event(named_struct('version', 2, 'sequence', 5, 'key', 'k', 'value', X'0102', 'src_id', 40))"
    [row] = spark.sql(f"SELECT dbus_event({built}) AS e, to_dbus_event(NULL) AS nothing").collect()
    assert (row.e.version, row.e.sequence, row.e.key, row.e.value, row.e.error) == (2, 5, "k", b"\1\2", None)
    assert row.nothing is None


# -- memory


@pytest.mark.process
def test_guard_pages() -> None:
    run_python("-c", "from tests.databus.test_writer import write_beside_guard_pages as f; f()")


def write_beside_guard_pages() -> None:
    """Copied bytes, and texts from them, beside a guard page."""
    rows = golden_rows()[::7]
    whole = fields_of(rows)
    for at_end in (True, False):
        event = guarded_column(rows, at_end=at_end)
        for encoding in ("JSON", "JSON_PLAIN"):
            texts = FUNCTIONS["dbus_to_json"].decode(pa.array(rows, pa.binary()), encoding)
            assert FUNCTIONS["dbus_to_json"].decode(event, encoding).equals(texts)
        fields = {field.name: whole.field(field.name) for field in FIELDS}
        for name, column in fields.items():
            if column.type == pa.binary():
                fields[name] = guarded_column(column.to_pylist(), at_end=at_end)
        guarded = pa.StructArray.from_arrays(list(fields.values()), list(fields))
        assert WRITE.decode(guarded).equals(WRITE.decode(whole))


@pytest.mark.process
def test_checked_build() -> None:
    """Every load, store and copy checked: one outside of its array would be an IndexError."""
    environment = {"SPARKWIRE_CHECKED": "1"}
    run_python("-c", "from tests.databus.test_writer import write_checked as f; f()", environment=environment)


def write_checked() -> None:
    assert CHECKED
    for event in golden_rows()[::5]:
        column = fields_of([event])
        text = FUNCTIONS["dbus_to_json"].decode(pa.array([event], pa.binary()))
        plain = FUNCTIONS["dbus_to_json"].decode(pa.array([event], pa.binary()), "JSON_PLAIN")
        assert text.is_valid().to_pylist() == plain.is_valid().to_pylist() == [True]
        [again] = WRITE.decode(column).to_pylist()
        assert again is not None
        assert len(again) <= len(event)
