-- Avro payloads of Databus events: as typed columns by their schemas, and the error of an unreadable payload.
-- `relay` has a row for each file of the databus examples: path STRING, content BINARY (Spark's binaryFile format).

-- * The payloads of a relay's data events, each with the id of its schema: the MD5 of the schema's text
CREATE OR REPLACE TEMPORARY VIEW payloads AS
SELECT e.position, dbus_key(e.event) AS key, dbus_schema_id(e.event) AS schema_id, dbus_value(e.event) AS payload
FROM relay LATERAL VIEW inline(dbus_events(content)) e
WHERE path LIKE '%/relay_v1.bin' AND dbus_event_type(e.event) = 'DATA' AND dbus_opcode(e.event) = 'UPSERT';

-- The schemas, as the relay's registry has them
CREATE OR REPLACE TEMPORARY VIEW schemas AS
SELECT unhex(md5(schema)) AS schema_id, get_json_object(schema, '$.name') AS name, schema
FROM VALUES
  ('{"type":"record","name":"Person","namespace":"com.example.events","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"},{"name":"age","type":["null","int"]}]}'),
  ('{"type":"record","name":"Order","namespace":"com.example.events","fields":[{"name":"id","type":"long"},{"name":"person","type":"long"},{"name":"total","type":"double"},{"name":"note","type":["null","string"]}]}'),
  ('{"type":"record","name":"Account","namespace":"com.example.events","fields":[{"name":"name","type":"string"},{"name":"blob","type":"bytes"},{"name":"active","type":"boolean"}]}')
  AS t(schema);

-- Payloads of each schema
SELECT name, count(*) AS payloads, min(length(payload)) AS least_bytes, max(length(payload)) AS most_bytes
FROM payloads JOIN schemas USING (schema_id)
GROUP BY name
ORDER BY name;

-- * Orders as typed columns: Avro to JSON by their schema, JSON to columns. (In Python sparkwire.avro does it in one step.)
SELECT key, o.*
FROM (
  SELECT position, key, from_json(avro_json(payload, (SELECT schema FROM schemas WHERE name = 'Order')),
                                  'id BIGINT, person BIGINT, total DOUBLE, note STRING') AS o
  FROM payloads
  WHERE schema_id = (SELECT schema_id FROM schemas WHERE name = 'Order'))
ORDER BY position
LIMIT 5;

-- * A wrong schema and half a payload: NULL, and the error code
SELECT key, avro_error(payload, order_schema) AS by_its_schema, avro_error(payload, person_schema) AS by_another,
       avro_error(substring(payload, 1, 6), order_schema) AS half_of_it
FROM payloads, (
  SELECT max(schema) FILTER (WHERE name = 'Order') AS order_schema, max(schema) FILTER (WHERE name = 'Person') AS person_schema
  FROM schemas)
WHERE schema_id = unhex(md5(order_schema))
ORDER BY position
LIMIT 3;

-- Confluent's wire format header: a zero byte and the schema's number in a registry
SELECT registry_schema_id(message) AS schema, hex(registry_payload(message)) AS payload, registry_schema_id(X'02AB') AS of_other_bytes
FROM VALUES (X'000000002A0206666F6F') AS t(message);
