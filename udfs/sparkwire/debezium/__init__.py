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
    CloudEvent  {specversion, id, type, iodebeziumop, iodebeziumtable, ..., data}: op and source are texts; data has the images

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

Spark's times have microseconds. A value with nanoseconds is NULL, and its text is in ``_unexpected_``. Pass ``BIGINT`` for such
a column of numbers and ``STRING`` for one of texts; both are exact.

A decimal is Base64 of its bytes, or a number (``decimal.format=NUMERIC``). The schema is the same, so the value decides. Both are
exact.

PostgreSQL does not send large values (TOAST) that have not changed. In their place, Debezium writes a placeholder:

    text, json, jsonb, xml       __debezium_unavailable_value
    bytea                        Base64 of the text; with binary.handling.mode=hex its bytes in hexadecimal
    text[], bytea[], uuid[]      one item: the text, its bytes in Base64, or the UUID of its bytes
    int[], bigint[], numeric[]   an array of numbers, decimals or {scale, value}: the bytes of the text
    hstore                       a map, or its JSON text, with one entry: the text to the text
    point, geometry, geography   a fixed place
    boolean[]                    null, of Debezium 3.3 in numeric[], too: it looks like NULL, and the old value is lost

``sparkwire.changes`` recognizes all of them but the last, and names the columns in ``_unavailable_``.
With ``REPLICA IDENTITY FULL``, PostgreSQL sends the values themselves.

What else ``sparkwire.changes`` does with messages:

- a key is an object, or one value if the table has one key column; each with its schema or without;
- a tombstone names no table. It is of the table if all rows of its topic are, whatever the name of the topic;
- columns beside the Kafka key have fillers in an old row. If the key needs one, a DELETE is an error without ``before="full"``;
- rows of Cassandra have {value, deletion_ts, set} in place of a value; a column that is not set is unavailable;
- in a compressed transaction of MySQL (``binlog_transaction_compression``), all events have one position: order by offset;
- a document of MongoDB is not a row: ``WRONG_FORMAT``. The functions read its envelope;
- Avro needs ``schemas``. A message's bytes become the JSON that ``JsonConverter`` would write, and the same scan reads it.

Ranges, network addresses and other types without a semantic name keep their wire type. A value that Spark cannot hold is NULL,
and ``_unexpected_`` has its text: infinite dates as ``infinity`` and ``-infinity``, years before 1 and after 9999.

Sources: Debezium 3.3's documentation and its embedded engine; Kafka Connect 4.1's ``JsonConverter``.
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
