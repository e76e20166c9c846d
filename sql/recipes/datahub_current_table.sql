-- From change log to table: what every table of a DataHub topic holds now.
--
-- Reads   messages(blob BINARY)
-- Gives   current_rows(database, schema_name, table, key ARRAY<STRING>, row_json STRING, sequence_id STRING, event_time TIMESTAMP)
--
-- A row of a table is what the latest change of its primary key left of it. A change is an image: an after image says
-- what a key holds from then on, a before image that it holds it no longer. So both halves of an update and the one
-- message UPDATE are treated alike, and a key that changes leaves its old place. At the same sequence id the after image
-- counts. Sequence ids are compared as numbers of any length. TRUNCATE and ERASE end every row of before.
--
-- Neither the order of the messages nor how often they come matters. Not covered: tables without a primary key, and
-- renamed tables, which start anew under their new name.

-- * What every table of the topic holds now
CREATE OR REPLACE TEMPORARY VIEW current_rows AS
WITH changes AS (
  SELECT c.*, struct(length(trim(LEADING '0' FROM sequence_id)) AS digits, trim(LEADING '0' FROM sequence_id) AS number) AS at
  FROM messages LATERAL VIEW inline(array(datahub_change(blob))) c
  WHERE error IS NULL),
images AS (
  SELECT database, schema_name, table, transform(primary_key, name -> image[name]) AS key,
         struct(at, is_after, event_time_ms) AS version, is_after, row_json, sequence_id, event_time
  FROM changes LATERAL VIEW inline(array(
    struct(false AS is_after, before AS row_json, before_map AS image),
    struct(true AS is_after, after AS row_json, after_map AS image))) i
  WHERE row_json IS NOT NULL
    AND size(primary_key) > 0
    AND (operation IN ('UPDATE_BEFORE', 'UPDATE_AFTER')
         OR operation = 'INSERT' AND is_after
         OR operation = 'DELETE' AND NOT is_after)),
latest AS (
  SELECT database, schema_name, table, key, max_by(struct(version.at, is_after, row_json, sequence_id, event_time), version) AS last
  FROM images
  GROUP BY database, schema_name, table, key),
emptied AS (
  SELECT database, schema_name, table, max(at) AS at
  FROM changes
  WHERE op IN ('TRUNCATE', 'ERASE')
  GROUP BY database, schema_name, table)
SELECT l.database, l.schema_name, l.table, l.key, l.last.row_json, l.last.sequence_id, l.last.event_time
FROM latest l
LEFT ANTI JOIN emptied e
  ON l.database <=> e.database AND l.schema_name <=> e.schema_name AND l.table <=> e.table AND l.last.at < e.at
WHERE l.last.is_after;

-- * One of them with its columns: order 1 is order 11 by now, order 2 is deleted
SELECT o.*, sequence_id
FROM (
  SELECT from_json(row_json, 'id BIGINT, customer STRING, amount DECIMAL(20, 2), paid BOOLEAN, note STRING') AS o, sequence_id
  FROM current_rows
  WHERE database = 'shop' AND table = 'orders')
ORDER BY o.id;
