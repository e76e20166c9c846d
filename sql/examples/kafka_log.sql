-- A directory of Kafka segments as a table, without a broker. The source decodes only the columns that you select.
-- `orders` is the partition directory orders-0, by the data source kafka_log.

-- * The records of the log; topic and partition come from the directory's name
SELECT topic, partition, count(*) AS records, min(offset) AS first_offset, max(offset) AS last_offset,
       min(timestamp) AS since, max(timestamp) AS until
FROM orders
GROUP BY topic, partition;

-- * The same directory in SQL alone, as a read_committed consumer would see it
CREATE OR REPLACE TEMPORARY VIEW committed USING kafka_log OPTIONS (
  path '$SAMPLES/kafka/orders-0', isolationLevel 'read_committed', columns 'offset, timestamp, key, value');

-- * What it does not get: records of aborted transactions, and records from the first open transaction on
SELECT is_transactional, count(*) AS records, count(committed.offset) AS committed
FROM orders LEFT JOIN committed USING (offset)
GROUP BY is_transactional
ORDER BY is_transactional;

-- From an offset on: reads an index and a few pages of a segment
CREATE OR REPLACE TEMPORARY VIEW latest USING kafka_log OPTIONS (
  path '$SAMPLES/kafka/orders-0', startingOffset '390', columns 'offset, timestamp, key, value');

-- The latest records
SELECT offset, timestamp, CAST(key AS STRING) AS key, length(value) AS bytes
FROM latest
ORDER BY offset;

-- A row for each batch: reads only headers
CREATE OR REPLACE TEMPORARY VIEW order_batches USING kafka_log OPTIONS (
  path '$SAMPLES/kafka/orders-0', rows 'batches', columns 'compression, producer_id, record_count, is_control, size');

-- Batches and records of each producer
SELECT producer_id, compression, count(*) AS batches, sum(record_count) AS records, sum(size) AS bytes
FROM order_batches
WHERE NOT is_control
GROUP BY producer_id, compression
ORDER BY producer_id, compression;
