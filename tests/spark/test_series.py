"""Functions with pandas Series in the form of PySpark's workers; needs no Spark."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.catalogue import SAMPLES
from sparkwire.spark.functions import series
from sparkwire.spark.functions.series import call
from tests.support.child import run_python

BEYOND = 2**53 + 1


def ask(name: str, *args: Any, zone: str | None = "UTC", **named: Any) -> Any:
    return call(FUNCTIONS[name], args, named, zone)


def spark_hands_over(array: pa.Array) -> Any:
    """PySpark's default conversion: ``to_pandas``, and a DataFrame for a STRUCT."""
    if pa.types.is_struct(array.type):
        return pd.DataFrame({f.name: column.to_pandas() for f, column in zip(array.type, array.flatten(), strict=True)})
    return array.to_pandas()


def sequences(values: list[int | None]) -> list[int]:
    events = ask("to_dbus_event", spark_hands_over(pa.array([{"sequence": v, "src_id": 1} for v in values])))
    result: list[int] = ask("dbus_sequence", pd.Series(list(events))).tolist()
    return result


def test_integers_beside_nulls() -> None:
    assert sequences([None, 77, 2**53 - 1]) == [0, 77, 2**53 - 1]
    assert sequences([BEYOND, 2**62]) == [BEYOND, 2**62]


@pytest.mark.parametrize("beyond", [BEYOND, -BEYOND, 2**53])
def test_integers_that_floats_have_rounded_are_rejected(beyond: int) -> None:
    with pytest.raises(
        ValueError, match=r"to_dbus_event\(\) expected event\.sequence BIGINT, and .* -?9007199254740992 exactly"
    ) as rejected:
        sequences([None, beyond])
    assert "\n" not in str(rejected.value)
    with pytest.raises(ValueError, match=r"to_kafka_message\(\) expected timestamp_ms BIGINT"):
        ask("to_kafka_message", pd.Series([b"", b""]), pd.Series([b"", b""]), pd.Series([None, beyond], dtype=float))


def test_doubles_are_no_integers() -> None:
    pair = pd.Series([b"", b""])
    for doubles in ([1.0, 2.0], [1.5, None]):
        with pytest.raises(TypeError, match=r"got \(BINARY, BINARY, DOUBLE\)"):
            ask("to_kafka_message", pair, pair, pd.Series(doubles))


def test_null_structs() -> None:
    """Spark passes a NULL STRUCT as a row of NULLs."""
    changes = pa.array([{"op": "I", "event_time_ms": 1}, None])
    assert ask("to_datahub_blob", spark_hands_over(changes)).isna().tolist() == [False, True]
    assert ask("to_dbus_event", pd.DataFrame({"sequence": [None]})).isna().all()
    assert ask("datahub_change", pd.Series([None, SAMPLES["blob"]]))["op"].isna().tolist() == [True, False]


@pytest.mark.parametrize("year", [1, 1600, 1969, 2024, 9999])
def test_instants(year: int) -> None:
    """Spark passes local times in the session's time zone."""
    noon = datetime.datetime(year, 7, 1, 12, 0, 0, 789)
    clock = pd.DataFrame({"op": ["I", "I"], "event_time": np.array([noon, "NaT"], "datetime64[us]")})
    utc, berlin = (ask("to_datahub_blob", clock, zone=zone) for zone in ("UTC", "Etc/GMT-2"))
    at = [ask("datahub_event_time_ms", pd.Series(list(blobs)))[0] for blobs in (utc, berlin)]
    epoch = datetime.datetime(1970, 1, 1)
    assert at[0] == (noon - epoch) // datetime.timedelta(milliseconds=1)
    assert at[0] - at[1] == 2 * 3_600_000


def test_ambiguous_local_times() -> None:
    for hour in (datetime.datetime(2024, 10, 27, 2, 30), datetime.datetime(2024, 3, 31, 2, 30)):
        with pytest.raises(
            ValueError, match=r"expected event\.timestamp TIMESTAMP, .* clocks in Europe/Berlin show twice or never"
        ):
            ask("to_dbus_event", pd.DataFrame({"timestamp": [hour]}), zone="Europe/Berlin")
    with pytest.raises(ValueError, match=r"set spark\.sql\.session\.timeZone"):
        ask("to_dbus_event", pd.DataFrame({"timestamp": [datetime.datetime(2024, 1, 1)]}), zone=None)


RECORDS = pa.array(
    [
        [
            {
                "key": None,
                "value": b"a",
                "timestamp_ms": 1,
                "headers": [{"key": "h", "value": b""}, {"key": "h", "value": None}],
            },
            {"key": b"k", "value": None, "timestamp_ms": None, "headers": []},
        ],
        None,
        [],
    ],
    FUNCTIONS["to_kafka_records"].arguments[0].type,
)


def test_nested_arrays_by_declared_type() -> None:
    constants = [pd.Series([0] * 3), pd.Series(["none"] * 3), pd.Series([2] * 3, dtype="int32")]
    known = FUNCTIONS["to_kafka_records"].decode(RECORDS, *map(pa.Array.from_pandas, constants)).to_pylist()
    given = (
        spark_hands_over(RECORDS),
        pd.Series(RECORDS.to_pylist()),
    )  # Spark 4.0 passes arrays of dicts, 3.5 passes lists
    for records in given:
        assert [b if isinstance(b, bytes) else None for b in ask("to_kafka_records", records, *constants)] == known


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([{"key": "text"}], r"to_kafka_records\(\) expected records\.key BINARY, got STRING"),
        (
            [{"kex": b""}],
            r"to_kafka_records\(\) expected records with the fields key, value, timestamp_ms, headers, offset, got kex",
        ),
        ([{"timestamp_ms": 1.5}], r"to_kafka_records\(\) expected records\.timestamp_ms BIGINT, got DOUBLE"),
        ([{"headers": [{"key": 1}]}], r"to_kafka_records\(\) expected records\.headers\.key STRING, got BIGINT"),
    ],
)
def test_wrong_items_give_a_clear_error(records: list[Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        ask("to_kafka_records", pd.Series([records]), *(pd.Series([c]) for c in (0, "none", 2)))


def test_maps() -> None:
    change = pd.DataFrame({"op": ["D", "D"], "before_map": [{"a": "b", "c": None}, [("a", "b"), ("c", None)]]})
    blobs = ask("to_datahub_blob", change)
    assert blobs[0] == blobs[1]
    assert ask("datahub_before", pd.Series(list(blobs))).tolist() == ['{"a":"b","c":null}'] * 2


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_results_are_arrow_columns(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark uses every column of a result unchanged, also with 64-bit offsets, and does not iterate over its values."""
    if function.arguments[0].type != pa.binary() or any(
        a.required and a.type != pa.binary() for a in function.arguments
    ):
        return
    rows = [*SAMPLES.values(), None]
    args = [pd.Series(rows) for argument in function.arguments if argument.required]
    arrow = function.decode(*(pa.array(rows, pa.binary()) for _ in args))
    result = call(function, args, {}, "UTC")
    columns = [result[name] for name in result] if isinstance(result, pd.DataFrame) else [result]
    known = arrow.flatten() if isinstance(result, pd.DataFrame) else [arrow]
    monkeypatch.setattr(series.ArrowColumn, "__getitem__", lambda _, item: pytest.fail(f"row {item} is made an object"))
    for column, expected in zip(columns, known, strict=True):
        walked = column.apply(lambda value: pytest.fail(f"{value!r} is walked"))
        assert pa.Array.from_pandas(walked, type=expected.type).equals(expected)
        if expected.type in (pa.binary(), pa.string()):
            large = pa.large_binary() if expected.type == pa.binary() else pa.large_string()
            assert pa.Array.from_pandas(column, type=large).type == large


def test_a_query_converts_a_column_once() -> None:
    """Spark passes the same Series to every function of a query."""
    place = series.ArgumentPlace("dbus_opcode", "event", None)
    events, others = pd.Series([SAMPLES["event"]] * 3), pd.Series([SAMPLES["stream"]] * 3)
    first = series.column(events, pa.binary(), place)
    assert series.column(events, pa.binary(), place) is first
    assert series.column(others, pa.binary(), place).to_pylist() == others.tolist()
    assert series.column(events, pa.binary(), place).to_pylist() == events.tolist()


def test_without_pyspark() -> None:
    """For functions of a catalog. In a separate process, because this one may have imported pyspark."""
    lines = [
        "import sys; sys.modules['pyspark'] = None",
        "import pandas as pd",
        "from sparkwire import FUNCTIONS",
        "from sparkwire.spark.functions.series import call",
        "from sparkwire.catalogue import SAMPLES",
        "print(call(FUNCTIONS['dbus_sequence'], [pd.Series([SAMPLES['event']])], {}, None)[0])",
    ]
    assert run_python("-c", "\n".join(lines)) == "77\n"


def test_a_batch_is_kept_no_longer_than_its_series() -> None:
    values = pd.Series([SAMPLES["event"]] * 3)
    assert ask("dbus_sequence", values).tolist() == ask("dbus_sequence", values).tolist()
    kept = series._LATEST._converted
    assert kept is not None
    assert kept[0]() is values
    del values
    assert series._LATEST._converted is None
