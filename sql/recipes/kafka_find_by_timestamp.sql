-- The first record not older than a time, in each segment: the same as a consumer's offsetsForTimes.
--
-- Reads   segments(path STRING, content BINARY)
--
-- The query reads headers up to the first batch that reaches the time, and decompresses only that batch.

-- The first record of each file that is not older than the time
SELECT regexp_extract(path, '[^/]+$', 0) AS file, first.offset, first.timestamp, batch.position
FROM (
  SELECT path, batch,
         get(filter(kafka_records(substring(content, batch.position + 1, batch.size)), r -> r.timestamp >= since), 0) AS first
  FROM (
    SELECT path, content, since, get(filter(kafka_batches(content), b -> b.max_timestamp_ms >= unix_millis(since)), 0) AS batch
    FROM segments CROSS JOIN (SELECT TIMESTAMP'2020-09-13 12:26:45 UTC' AS since)))
WHERE first IS NOT NULL
ORDER BY file;
