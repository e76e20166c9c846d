-- Topic, partition and base offset from the path of a segment: /data/kafka/orders-0/00000000000000000280.log
--
-- Reads   segments(path STRING, content BINARY)
--
-- A topic may have dashes and dots, so the partition is what follows the last dash. Spark's file sources skip folders that begin
-- with an underscore, __consumer_offsets-0 for instance, unless the path names them.

-- Which partition each file belongs to
SELECT path,
       regexp_extract(path, '([^/]+)-([0-9]+)/[^/]*$', 1) AS topic,
       CAST(regexp_extract(path, '([^/]+)-([0-9]+)/[^/]*$', 2) AS INT) AS partition,
       CAST(regexp_extract(path, '([0-9]{20})[.][^/]*$', 1) AS BIGINT) AS base_offset
FROM segments
WHERE path RLIKE '[^/]+-[0-9]+/[0-9]{20}[.]log$'
ORDER BY topic, partition, base_offset;
