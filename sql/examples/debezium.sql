-- Debezium's change messages: the messages of a topic, their rows as typed columns, invalid messages.
-- `debezium` has a row for each file: path STRING, content BINARY (Spark's binaryFile format). Each line is a message.

-- One row for each message
CREATE OR REPLACE TEMPORARY VIEW messages AS
SELECT line AS value
FROM debezium LATERAL VIEW explode(split(CAST(content AS STRING), '\n')) AS line
WHERE line <> '';

-- * Every field of every message, decoded once
CREATE OR REPLACE TEMPORARY VIEW changes AS
SELECT c.* FROM messages LATERAL VIEW inline(array(debezium_change(value))) c;

-- Messages by table and operation
SELECT connector, table, operation, count(*) AS messages, min(event_time) AS first, max(event_time) AS last
FROM changes
GROUP BY connector, table, operation
ORDER BY connector, table, operation;

-- * Invalid messages: the reason, and their readable fields
SELECT error, op, table, event_time
FROM changes
WHERE error IS NOT NULL;

-- Rows after each change as typed columns, with from_json
SELECT event_time, operation, r.*
FROM (
  SELECT event_time, operation, from_json(after, 'order_id INT, line_no INT, sku STRING, qty INT') AS r
  FROM changes
  WHERE connector = 'postgresql' AND table = 'order_lines' AND after IS NOT NULL)
ORDER BY event_time;

-- * The position of each change in PostgreSQL's log: the pair orders them; lsn alone decreases if transactions overlap
SELECT get_json_object(source, '$.sequence') AS sequence, get_json_object(source, '$.lsn') AS lsn, operation, table
FROM changes
WHERE connector = 'postgresql' AND snapshot = 'false'
ORDER BY CAST(get_json_object(get_json_object(source, '$.sequence'), '$[0]') AS BIGINT), CAST(lsn AS BIGINT);

-- DDL statements of MariaDB's tables
SELECT event_time, get_json_object(value, '$.ddl') AS statement
FROM messages LATERAL VIEW inline(array(debezium_change(value))) c
WHERE operation = 'DDL';

-- Changes of each transaction
SELECT get_json_object(value, '$.id') AS id, get_json_object(value, '$.event_count') AS changes
FROM messages
WHERE debezium_operation(value) = 'TRANSACTION' AND get_json_object(value, '$.status') = 'END';
