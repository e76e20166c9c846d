-- Kafka segments directly from a broker's disk: records, tombstones, gaps, corruption, transactions.
-- `segments` has a row for each file: path STRING, content BINARY (Spark's binaryFile format).

-- * Split every segment into its records, compressed ones too; unreadable bytes are a row with an error code
CREATE OR REPLACE TEMPORARY VIEW records AS
SELECT regexp_extract(path, '[^/]+$', 0) AS file, r.*
FROM segments LATERAL VIEW inline(kafka_records(content)) r;

-- The batches of every segment: reads headers and decompresses nothing
CREATE OR REPLACE TEMPORARY VIEW batches AS
SELECT regexp_extract(path, '[^/]+$', 0) AS file, b.*
FROM segments LATERAL VIEW inline(kafka_batches(content)) b;

-- * Records of each file, by magic and codec
SELECT file, magic, compression, count(DISTINCT position) AS batches, count(*) AS records,
       min(offset) AS first_offset, max(offset) AS last_offset, min(timestamp) AS since, max(timestamp) AS until
FROM records
WHERE error IS NULL
GROUP BY file, magic, compression
ORDER BY file, magic, compression;

-- Records for each key: the ten keys with the most
SELECT CAST(key AS STRING) AS key, count(*) AS records, count_if(value IS NULL) AS tombstones,
       max_by(substring(CAST(value AS STRING), 1, 40), offset) AS last_value
FROM records
WHERE file = 'clicks.log' AND key IS NOT NULL AND key <> X''
GROUP BY key
ORDER BY records DESC, key
LIMIT 10;

-- Tombstones: keys whose last record has no value
SELECT file, CAST(key AS STRING) AS key, offset, timestamp
FROM (
  SELECT *, max(offset) OVER (PARTITION BY file, key) AS last_offset
  FROM records
  WHERE error IS NULL AND CAST(key AS STRING) LIKE 'key-%')
WHERE offset = last_offset AND value IS NULL
ORDER BY file, offset
LIMIT 10;

-- Offset gaps: offsets that compaction removed, or that were lost
SELECT file, previous + 1 AS gap_from, offset - 1 AS gap_to, offset - previous - 1 AS missing
FROM (
  SELECT file, offset, lag(offset) OVER (PARTITION BY file ORDER BY position, offset) AS previous
  FROM records
  WHERE offset IS NOT NULL)
WHERE offset > previous + 1
ORDER BY missing DESC, file
LIMIT 10;

-- Batches without records, which the cleaner keeps for their producers' sequences
SELECT file, position, base_offset, last_offset, producer_id, producer_epoch, last_sequence
FROM batches
WHERE record_count = 0
ORDER BY file, position
LIMIT 10;

-- * Corrupt bytes: where they are, how many, and why they are unreadable
SELECT file, position, size, magic, base_offset, crc_valid, error
FROM batches
WHERE error IS NOT NULL
ORDER BY file, position;

-- Corrupt files: the bytes that a broker keeps when it recovers, and the readable records after them
WITH kept AS (
  SELECT regexp_extract(path, '[^/]+$', 0) AS file, length(content) AS bytes,
         kafka_valid_bytes(content) AS kept_bytes, kafka_next_offset(content) AS next_offset
  FROM segments)
SELECT file, bytes, kept_bytes, next_offset,
       count_if(error IS NULL AND position < kept_bytes) AS records_kept,
       count_if(error IS NULL AND position >= kept_bytes) AS records_after
FROM kept JOIN records USING (file)
WHERE kept_bytes < bytes
GROUP BY ALL
ORDER BY file;

-- Transactions: each ends with a control record of its producer
SELECT producer_id, producer_epoch, control_type, count(*) AS transactions, min(offset) AS first_marker, max(offset) AS last_marker
FROM records
WHERE file = 'orders.log' AND is_control
GROUP BY producer_id, producer_epoch, control_type
ORDER BY producer_id, producer_epoch, control_type;

-- * Records of aborted transactions, which read_committed leaves out
WITH ended AS (
  SELECT producer_id, offset, is_control,
         min(CASE WHEN is_control THEN struct(offset, control_type) END) OVER (
           PARTITION BY producer_id ORDER BY offset ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS marker
  FROM records
  WHERE file = 'orders.log' AND is_transactional)
SELECT producer_id, marker.offset AS aborted_at, count(*) AS records, min(offset) AS first_offset, max(offset) AS last_offset
FROM ended
WHERE NOT is_control AND marker.control_type = 'ABORT'
GROUP BY producer_id, marker.offset
ORDER BY aborted_at;

-- Headers: an array of structs in the order of the record, in which keys may repeat
SELECT offset, transform(headers, h -> concat(h.key, '=', coalesce(CAST(h.value AS STRING), 'NULL'))) AS headers
FROM records
WHERE file = 'orders.log' AND size(headers) > 2
ORDER BY offset
LIMIT 5;

-- Where a consumer of offset 300 starts in each file: the first batch that ends at this offset or later
SELECT file, position, base_offset, last_offset, base_offset <= 300 AS holds_it
FROM batches JOIN (
  SELECT regexp_extract(path, '[^/]+$', 0) AS file, kafka_search_offset(content, 300).position AS position
  FROM segments) USING (file, position)
ORDER BY file;

-- Byte by byte: the field with each error, and its bytes
SELECT regexp_extract(path, '[^/]+$', 0) AS file, line.position, line.size, line.field, line.value,
       regexp_extract(line.note, '^[A-Z_]+', 0) AS error
FROM segments LATERAL VIEW inline(kafka_explain(substring(content, 1, 20000))) line
WHERE path LIKE '%damaged%' AND line.note RLIKE '^[A-Z_]+: '
ORDER BY file, position
LIMIT 10;
