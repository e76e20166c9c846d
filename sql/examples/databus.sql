-- Databus event streams: their events, their windows, and their corrupt bytes.
-- `stream` has a row for each file: path STRING, content BINARY (Spark's binaryFile format).

-- * Split every file into its events, corrupt ones too
CREATE OR REPLACE TEMPORARY VIEW events AS
SELECT regexp_extract(path, '[^/]+$', 0) AS file, file AS stream, e.*
FROM stream LATERAL VIEW inline(dbus_events(content)) e AS position, event, status, error;

-- Events of each file, by version and byte order
SELECT file, version, byte_order, count(*) AS events, sum(bytes) AS bytes
FROM (
  SELECT file, dbus_version(event) AS version, dbus_byte_order(event) AS byte_order, length(event) AS bytes
  FROM events
  WHERE status = 'OK')
GROUP BY file, version, byte_order
ORDER BY file;

-- Events per source and opcode (sources up to 0 are Databus's own)
SELECT file, source, type,
       count_if(opcode = 'UPSERT') AS upserts, count_if(opcode = 'DELETE') AS deletes, count(*) AS events
FROM (
  SELECT file, dbus_src_id(event) AS source, dbus_event_type(event) AS type, dbus_opcode(event) AS opcode
  FROM events
  WHERE status = 'OK')
GROUP BY file, source, type
ORDER BY file, source DESC;

-- * The relay's windows in the order of delivery: some are empty, one is cut, some came twice
WITH relay AS (
  SELECT position, dbus_sequence(event) AS scn, dbus_event_type(event) AS type,
         dbus_src_id(event) AS source, dbus_timestamp(event) AS at
  FROM events
  WHERE file = 'relay_v1.bin'),
numbered AS (
  SELECT *, count_if(type <> 'DATA') OVER in_front AS delivery
  FROM relay
  WINDOW in_front AS (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT max(scn) AS window,
       count_if(type = 'DATA') AS events,
       count(DISTINCT source) FILTER (WHERE type = 'DATA') AS sources,
       date_format(min(at) FILTER (WHERE type = 'DATA'), 'HH:mm:ss.SSS') AS first,
       max_by(type, position) AS ended_by
FROM numbered
GROUP BY delivery
ORDER BY delivery;

-- * Corrupt bytes: where they are, how many, and why they are unreadable
SELECT file, position, length(event) AS bytes, status, error
FROM events
WHERE status <> 'OK'
ORDER BY file, position;

-- * Fields of corrupt events: a wrong checksum hides no field
SELECT position, error, header_ok, value_ok, opcode, source, scn, key
FROM (
  SELECT position, error,
         dbus_header_crc_valid(event) AS header_ok, dbus_value_crc_valid(event) AS value_ok,
         dbus_opcode(event) AS opcode, dbus_src_id(event) AS source,
         dbus_sequence(event) AS scn, dbus_key(event) AS key
  FROM events
  WHERE status <> 'OK')
ORDER BY position;

-- Windows that lost events: the valid events of the relay's stream that the corrupt copy does not have
WITH valid AS (
  SELECT file, dbus_sequence(event) AS window, dbus_opcode(event) AS opcode, dbus_key(event) AS key
  FROM events
  WHERE status = 'OK' AND dbus_event_type(event) = 'DATA')
SELECT window, count(*) AS lost, min(key) AS first_key, max(key) AS last_key
FROM (SELECT * FROM valid WHERE file = 'relay_v1.bin' AND window <= 1060)
  LEFT ANTI JOIN (SELECT * FROM valid WHERE file = 'damaged_v1.bin') USING (window, opcode, key)
GROUP BY window
ORDER BY window;

-- Deleted rows: keys whose last change is a DELETE
SELECT source, key, opcode, window
FROM (
  SELECT source, key, max_by(opcode, position) AS opcode, max(window) AS window
  FROM (
    SELECT position, dbus_src_id(event) AS source, dbus_key(event) AS key,
           dbus_opcode(event) AS opcode, dbus_sequence(event) AS window
    FROM events
    WHERE file = 'relay_v1.bin')
  WHERE source > 0
  GROUP BY source, key)
WHERE opcode = 'DELETE'
ORDER BY source, key;

-- V2 events by the type of their key, with the versions of the payload's and the key's schema
SELECT key_type, count(*) AS events, count(value_size) AS payloads, max(value_size) AS longest,
       array_join(array_sort(collect_set(schema_version)), ' ') AS versions,
       array_join(array_sort(collect_set(key_version)), ' ') AS key_versions
FROM (
  SELECT dbus_key_type(event) AS key_type, dbus_value_size(event) AS value_size,
         dbus_schema_version(event) AS schema_version, dbus_key_schema_version(event) AS key_version
  FROM events
  WHERE file = 'espresso_v2.bin')
GROUP BY key_type
ORDER BY key_type;

-- Payloads of control events: checkpoints and errors are JSON
SELECT type, source,
       get_json_object(value, '$.windowScn') AS window_scn,
       get_json_object(value, '$.consumption_mode') AS mode,
       get_json_object(value, '$.error.message') AS error
FROM (
  SELECT position, dbus_event_type(event) AS type, dbus_src_id(event) AS source,
         CAST(dbus_value(event) AS STRING) AS value
  FROM events
  WHERE file = 'espresso_v2.bin')
WHERE type IN ('CHECKPOINT', 'SCN_REGRESS', 'ERROR')
ORDER BY position;

-- Many fields in one pass: dbus_event returns all fields at once, inline() turns them into columns
SELECT e.key_type, e.key, e.opcode, e.is_trace, e.schema_version, e.value_size, e.timestamp
FROM events LATERAL VIEW inline(array(dbus_event(event))) e
WHERE file = 'relay_v1.bin' AND e.sequence = 1010 AND e.is_valid
ORDER BY position;

-- Byte by byte: the field with each error, and its value
SELECT file, events.position, line.position AS byte, line.field, line.value, events.error
FROM events LATERAL VIEW inline(dbus_explain(event)) line
WHERE line.note LIKE concat(events.error, ': %')
ORDER BY file, events.position
LIMIT 10;
