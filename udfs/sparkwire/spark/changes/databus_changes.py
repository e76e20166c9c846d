"""Change tables of Databus's events."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from sparkwire.base.printable import value_error
from sparkwire.changes.columns import BEFORE, UNAVAILABLE, UNEXPECTED, ChangeBatch, check_keys
from sparkwire.changes.databus import DatabusSource, databus_changes, databus_schema, keys_in_schema, lacks_columns
from sparkwire.core.names import unknown_table
from sparkwire.databus.event_payloads import by_source, schemas_of_events, source_name
from sparkwire.spark.changes.reading import Arrays, Reading
from sparkwire.spark.changes.request import Request, check_place
from sparkwire.spark.frames import check_binary, quoted


def reading(request: Request) -> Reading:
    """How the events of a source are read. Raises ValueError if the schemas do not have the source."""
    if request.column == "value" and "event" in request.df.columns:
        raise ValueError(
            'changes() of databus expected the column of events, got "value", the default. The DataFrame has a column event: '
            'pass column="event"'
        )
    check_binary(request.df, request.column)
    if request.schemas is None:
        raise ValueError(
            "changes() of databus expected schemas, a folder of .avsc files, a list or a mapping; got none"
        )
    schemas = schemas_of_events(request.schemas)
    readers = by_source(schemas)
    name = _name_of(request.table, list(readers))
    read = readers[name]._replace(fields_of_last=False)
    keys = tuple(request.keys) if request.keys else keys_in_schema(read.schemas.texts[-1])
    source = DatabusSource(name, read, keys, schemas, request.epoch if isinstance(request.epoch, int) else 0)
    if request.keys is not None:
        check_keys(request.keys, [field.name for field in read.fields], "changes")
    absent = [key for key in keys or () if key not in {field.name for field in read.fields}]
    if absent:
        raise value_error(
            f"the schema {name} has no column {absent[0]}, which its key names: pass keys=[…], the columns of the primary key"
        )
    needs = {"event": request.column}
    for role, names in (("file", ("file", "stream")), ("position", ("position",))):
        present = next(filter(None, map(request.find, names)), None)
        if present:
            check_place(role, request.df, present)
            needs[role] = present

    def decode(arrays: Arrays) -> ChangeBatch:
        return databus_changes(
            arrays["event"], arrays.get("file"), arrays.get("position"), source, arrays.get("epochs")
        )

    never = (BEFORE, UNEXPECTED) if lacks_columns(read) else (BEFORE, UNEXPECTED, UNAVAILABLE)
    return Reading(databus_schema(source), decode, needs, keys, never, missing_is_unknown=True)


def tables(request: Request) -> list[str]:
    """The sorted names of the sources that have schemas."""
    return sorted(by_source(schemas_of_events(request.schemas)))


def _name_of(table: str, names: Sequence[str]) -> str:
    """The source that a user names: in full or without the namespace, or by one of its versions."""
    source = source_name(table)
    matches = [name for name in names if name in (table, source)]
    matches = matches or [name for name in names if name.rpartition(".")[2] == source]
    if len(matches) != 1:
        raise unknown_table(table, sorted(names), "the schemas")
    return matches[0]


def in_ended_windows(request: Request) -> DataFrame:
    """Leave out events of windows without an end, if the columns of the DataFrame identify these windows."""
    df = request.df
    if request.find("window_scn"):
        return df.where("window_scn IS NOT NULL")
    stream, position = request.find("stream") or request.find("file"), request.find("position")
    if df.isStreaming or stream is None or position is None:
        return df
    event = F.col(request.column)
    ids = (b"\x00", 2, (b"\xff\xfe", b"\xfe\xff")), (b"\x02", 4, (b"\xff\xff\xff\xfe", b"\xfe\xff\xff\xff"))
    ends = F.lit(False)
    for version, width, marks in ids:
        ends = ends | (F.substring(event, 1, 1) == F.lit(version)) & F.substring(event, 32, width).isin(
            *(F.lit(mark) for mark in marks)
        )
    within = [F.col(name) for name in dict.fromkeys(filter(None, (request.find("file"), position)))]
    place = F.struct(*within)
    last = df.where(ends).groupBy(F.col(stream).alias("ended_stream")).agg(F.max(place).alias("last_end"))
    return df.join(
        F.broadcast(last), F.col(stream).eqNullSafe(F.col("ended_stream")) & (place < F.col("last_end"))
    ).select(*(F.col(quoted(name)) for name in df.columns))
