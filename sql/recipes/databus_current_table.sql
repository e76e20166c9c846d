-- From change log to table: what every key of every Databus source holds now.
--
-- Reads   events(stream STRING, position, event BINARY), position being anything that orders a stream's events
-- Gives   current_rows(stream, src_id INT, key_long BIGINT, key_bytes BINARY, version STRUCT<scn, position>, value BINARY,
--                      schema_id BINARY)
--
-- A key holds what its change with the highest scn left of it, and among the changes of one scn the one that came last. So
-- neither the order of the rows matters, nor that windows come twice: after an SCN regress, or when a relay sends them again.
-- A change whose window has no end yet does not count. A DELETE removes its key.

-- Every change with its key, one sequence to order them by, and whether it deletes: what MERGE and
-- create_auto_cdc_flow(keys, sequence_by, apply_as_deletes) take
CREATE OR REPLACE TEMPORARY VIEW changes AS
WITH told AS (
  SELECT stream, position, event, dbus_src_id(event) AS src_id, dbus_sequence(event) AS scn
  FROM events
  WHERE dbus_is_valid(event)),
ended AS (
  SELECT *, max(CASE WHEN src_id = -2 THEN position END) OVER (PARTITION BY stream) AS last_end
  FROM told)
SELECT stream, src_id, dbus_key_long(event) AS key_long, dbus_key_bytes(event) AS key_bytes,
       struct(scn, position) AS version, dbus_opcode(event) <=> 'DELETE' AS is_delete,
       dbus_value(event) AS value, dbus_schema_id(event) AS schema_id
FROM ended
WHERE src_id >= 0 AND position < last_end;

-- What every key holds now
CREATE OR REPLACE TEMPORARY VIEW current_rows AS
SELECT stream, src_id, key_long, key_bytes, last.version, last.value, last.schema_id
FROM (
  SELECT stream, src_id, key_long, key_bytes, max_by(struct(version, is_delete, value, schema_id), version) AS last
  FROM changes
  GROUP BY stream, src_id, key_long, key_bytes)
WHERE NOT last.is_delete;

-- How many keys every source has
SELECT stream, src_id, count(*) AS keys, max(version.scn) AS scn
FROM current_rows
GROUP BY stream, src_id
ORDER BY stream, src_id;
