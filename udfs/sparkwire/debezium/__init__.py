"""Debezium: change messages of databases, as Debezium's connectors write them to Kafka.

    message     one JSON object in UTF-8: a payload, or {schema, payload} if the converter embeds schemas
    payload     an envelope, a flattened row, or a notice

    envelope    before, after   the row: {name: value}; for MongoDB, a text with the document
                source          {version, connector, name, ts_ms, snapshot, db, table, ...}: the origin of the change
                transaction     {id, total_order, data_collection_order}
                op              see `layout.OPERATIONS`, case-sensitive
                ts_ms, ts_us, ts_ns     when the connector processed the change [ms, us, ns since epoch]
    flattened   the row's columns, and what ``ExtractNewRecordState`` added: __deleted, __op, __table, __lsn, __source_ts_ms, ...
    notice      transaction       {status, id, event_count, data_collections, ts_ms}
                heartbeat         {ts_ms}
                schema            {source, ts_ms, databaseName, schemaName, ddl, tableChanges}
    tombstone   no bytes: the row with this key was deleted

Keys may have any order; unknown keys are ignored. The sources leave some cases open:

- JSON is exactly as in RFC 8259, as Debezium writes it: not-a-number and infinities are strings;
- a message is {schema, payload} if the schema is an object with a type, or is null beside only a payload;
- a message is an envelope if it has source or op, and before or after;
- a message is a notice if it has the fields of a notice and no others;
- any other object is a flattened row;
- if a key repeats in an object, the last one wins; an escaped half of a surrogate pair is read as U+FFFD;
- a message that is `BAD_JSON` returns the fields that are complete before the corruption;
- {schema, payload} with a null payload is a tombstone: NULL, and no error;
- a text field whose value is not a string returns its JSON text; a time that is not an integer is NULL;
- a flattened row without an operation is an UPSERT; ``__deleted`` takes precedence over ``__op``;
- the prefix of added fields is ``__``; fields with another prefix are columns of the row;
- messages of MongoDB and Cassandra may have only one image, or none.

``sparkwire.debezium.rows`` maps the types of Connect and Debezium to these SQL types:

    int8 ... int64, float, double, boolean, string, bytes    TINYINT ... BIGINT, FLOAT, DOUBLE, BOOLEAN, STRING, BINARY
    Date, IsoDate                                            DATE
    Timestamp, MicroTimestamp, NanoTimestamp, IsoTimestamp   TIMESTAMP_NTZ: a local time, as in the database
    ZonedTimestamp                                           TIMESTAMP
    Time, MicroTime, NanoTime, IsoTime, ZonedTime            STRING: MariaDB's may be negative or beyond a day
    Decimal                                                  DECIMAL(p,s), STRING beyond 38 digits
    VariableScaleDecimal                                     STRING, all digits: every value has its own scale
    MicroDuration, NanoDuration                              INTERVAL DAY TO SECOND, a month of 30.4375 days
    Interval, Uuid, Json, Xml, Ltree, Tsvector, Enum         STRING
    EnumSet, Year                                            ARRAY<STRING>, INT
    Bits                                                     BINARY, the most significant byte first
    Point, Geometry, Geography                               STRUCT of those of x, y, wkb and srid that exist
    array, map, struct                                       ARRAY, MAP, STRUCT

Ranges, network addresses and other types without a semantic name keep their wire type. A value that Spark cannot hold is NULL,
and ``_unexpected_`` has its text: infinite dates as ``infinity`` and ``-infinity``, years before 1 and after 9999.

Sources: Debezium 3.3's documentation and its embedded engine; Kafka Connect 4.1's ``JsonConverter``.
"""

from __future__ import annotations

from sparkwire.debezium.api import columns, rows

__all__ = ["columns", "rows"]


def __dir__() -> list[str]:
    return list(__all__)
