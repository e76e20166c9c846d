-- DataHub change messages: the messages of a topic, their images as typed columns, invalid messages.
-- `datahub` has a row for each file: path STRING, content BINARY (Spark's binaryFile format). Each line is a message.

-- One row for each message
CREATE OR REPLACE TEMPORARY VIEW messages AS
SELECT CAST(line AS BINARY) AS blob
FROM datahub LATERAL VIEW explode(split(CAST(content AS STRING), '\n')) AS line
WHERE line <> '';

-- * Every field of every message, decoded once
CREATE OR REPLACE TEMPORARY VIEW changes AS
SELECT c.* FROM messages LATERAL VIEW inline(array(datahub_change(blob))) c;

-- Messages by table and operation
SELECT database, table, operation, count(*) AS messages, min(event_time) AS first, max(event_time) AS last
FROM changes
GROUP BY database, table, operation
ORDER BY database, table, operation;

-- * Invalid messages: the reason, and their readable fields
SELECT error, op, sequence_id, table, event_time
FROM changes
WHERE error IS NOT NULL
ORDER BY sequence_id;

-- DDL statements of the tables
SELECT event_time, table, op, ddl_text, length(ddl_meta) AS meta_bytes
FROM changes
WHERE operation = 'DDL'
ORDER BY event_time;

-- The columns of each table, and the first message that has them
SELECT table, array_join(columns.name, ' ') AS columns, min(sequence_id) AS since
FROM changes
WHERE columns IS NOT NULL
GROUP BY table, columns
ORDER BY table, since;

-- After images as typed columns, with from_json: amounts exact, a DATE from its milliseconds, BYTES from Base64
SELECT sequence_id, o.id, o.customer, o.amount, o.paid,
       timestamp_millis(o.created) AS created, CAST(unbase64(o.receipt) AS STRING) AS receipt
FROM (
  SELECT sequence_id, from_json(after, 'id BIGINT, customer STRING, amount DECIMAL(20, 2), paid BOOLEAN, created BIGINT, receipt STRING') AS o
  FROM changes
  WHERE table = 'orders' AND operation IN ('INSERT', 'UPDATE_AFTER'))
ORDER BY sequence_id;

-- The same without a schema, with parse_json: a VARIANT takes any columns
SELECT sequence_id, variant_get(v, '$.id', 'BIGINT') AS id, variant_get(v, '$.note', 'STRING') AS note, schema_of_variant(v) AS fields
FROM (
  SELECT sequence_id, parse_json(after) AS v
  FROM changes
  WHERE table = 'orders' AND operation IN ('INSERT', 'UPDATE_AFTER'))
ORDER BY sequence_id;

-- * Columns that each update changed: both halves have the same sequence id, and either may have both images
SELECT sequence_id, name, old[name] AS old, new[name] AS new
FROM (
  SELECT sequence_id, any_value(before_map, true) AS old, any_value(after_map, true) AS new
  FROM changes
  WHERE operation IN ('UPDATE_BEFORE', 'UPDATE_AFTER') AND error IS NULL
  GROUP BY database, table, sequence_id)
LATERAL VIEW explode(array_union(map_keys(old), map_keys(new))) AS name
WHERE NOT old[name] <=> new[name]
ORDER BY sequence_id, name;

-- As a TUPLE topic would carry them
SELECT t.*
FROM messages LATERAL VIEW inline(array(datahub_tuple(blob))) t
WHERE _operation_type_ IS NOT NULL
ORDER BY _sequence_id_, _after_image_;

-- Messages with the same key come in order, because they share a shard
SELECT datahub_shard_key(blob) AS shard_key, count(*) AS messages
FROM messages
GROUP BY shard_key
ORDER BY messages DESC, shard_key;
