-- The streaming twin of sql/recipes/databus_current_table.sql: the changes of one micro-batch, merged into a table that is kept.
--
-- Reads   batch(stream STRING, position, event BINARY): whole windows, as the data source `databus` streams them
-- Keeps   current_versions, a table that takes MERGE (Delta, Iceberg): a row a key, with the version of its last change;
--         a deleted key stays, marked, so that an older change that comes late does not bring it back
-- Gives   current_rows, the keys that are not deleted
--
-- Run the MERGE in foreachBatch, in the batch's own session, with `batch` the view of the batch:
-- batch.createOrReplaceTempView("batch"); batch.sparkSession.sql(merge). A batch that comes twice changes nothing.

-- Once
CREATE TABLE IF NOT EXISTS current_versions (
  stream STRING, src_id INT, key_long BIGINT, key_bytes BINARY, version STRUCT<scn: BIGINT, position: BIGINT>, is_delete BOOLEAN,
  value BINARY, schema_id BINARY)
USING DELTA;

-- For every batch
MERGE INTO current_versions t
USING (
  SELECT stream, src_id, key_long, key_bytes, last.*
  FROM (
    SELECT stream, src_id, key_long, key_bytes, max_by(struct(version, is_delete, value, schema_id), version) AS last
    FROM (
      SELECT stream, dbus_src_id(event) AS src_id, dbus_key_long(event) AS key_long, dbus_key_bytes(event) AS key_bytes,
             struct(dbus_sequence(event) AS scn, position) AS version, dbus_opcode(event) <=> 'DELETE' AS is_delete,
             dbus_value(event) AS value, dbus_schema_id(event) AS schema_id
      FROM batch
      WHERE dbus_is_valid(event) AND dbus_src_id(event) >= 0)
    GROUP BY stream, src_id, key_long, key_bytes)) s
ON t.stream <=> s.stream AND t.src_id = s.src_id AND t.key_long <=> s.key_long AND t.key_bytes <=> s.key_bytes
WHEN MATCHED AND s.version > t.version THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *;

-- Once
CREATE OR REPLACE TEMPORARY VIEW current_rows AS
SELECT stream, src_id, key_long, key_bytes, version, value, schema_id FROM current_versions WHERE NOT is_delete;
