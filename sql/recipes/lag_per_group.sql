-- The records that each consumer group has not read yet, for each partition, from the broker's files.
--
-- Reads   commits(partition INT, offset BIGINT, key BINARY, value BINARY, producer_id BIGINT, is_transactional BOOLEAN,
--         control_type STRING): the records of __consumer_offsets, with its control records.
--           spark.read.format("kafka_log").option("controlRecords", "true").load("/var/kafka/__consumer_offsets-*")
--         batches(topic STRING, partition INT, base_offset BIGINT, last_offset BIGINT): the batches of the topics.
--           .option("rows", "batches").option("columns", "topic,partition,base_offset,last_offset").load("/var/kafka")
--
-- All commits of a group are in one partition of __consumer_offsets, so the highest offset is the last commit. A tombstone after it
-- means that the commit has expired, or that somebody deleted the group. A commit in a transaction counts if the producer's next
-- control record is COMMIT. If that is ABORT or does not exist, the group continues at its commit before. The lag also counts
-- markers and compacted records.

-- Lag of each group
WITH marked AS (
  SELECT *, first(control_type, true) OVER (
    PARTITION BY partition, producer_id ORDER BY offset ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS marker
  FROM commits
), committed AS (
  SELECT r.group AS group_id, r.topic, r.partition, max_by(r.offset, at) AS next_offset
  FROM (
    SELECT offset AS at, kafka_group_record(key, value) AS r
    FROM marked
    WHERE control_type IS NULL AND (marker = 'COMMIT' OR NOT is_transactional))
  WHERE r.kind = 'OFFSET' AND r.error IS NULL
  GROUP BY ALL
), ends AS (
  SELECT topic, partition, min(base_offset) AS first_offset, max(last_offset) + 1 AS end_offset
  FROM batches
  GROUP BY ALL
)
SELECT group_id, topic, partition, next_offset, end_offset, end_offset - greatest(next_offset, first_offset) AS lag,
       next_offset < first_offset AS has_lost
FROM committed JOIN ends USING (topic, partition)
WHERE next_offset IS NOT NULL
ORDER BY group_id, topic, partition;
