-- The records that each consumer group has not read yet, for each partition, from the broker's files.
--
-- Reads   commits(offset BIGINT, key BINARY, value BINARY): the records of __consumer_offsets.
--           spark.read.format("kafka_log").option("columns", "offset,key,value").load("/var/kafka/__consumer_offsets-*")
--         batches(topic STRING, partition INT, base_offset BIGINT, last_offset BIGINT): the batches of the topics.
--           .option("rows", "batches").option("columns", "topic,partition,base_offset,last_offset").load("/var/kafka")
--
-- All commits of a group are in one partition of __consumer_offsets, so the highest offset is the last commit. A tombstone after it
-- means that the commit has expired, or that somebody deleted the group. The lag also counts markers and compacted records.

-- Lag of each group
WITH committed AS (
  SELECT r.group AS group_id, r.topic, r.partition, max_by(r.offset, at) AS next_offset
  FROM (SELECT offset AS at, kafka_group_record(key, value) AS r FROM commits)
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
