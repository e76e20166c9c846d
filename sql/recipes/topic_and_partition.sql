-- Topic, partition and base offset from the path of a segment: /data/kafka/orders-0/00000000000000000280.log
--
-- Reads   segments(path STRING, content BINARY)
--
-- A topic's name may have dashes and dots, so the partition follows the last dash. Spark's file sources skip folders whose names
-- begin with an underscore, such as __consumer_offsets-0, unless the path names them.

-- The partition of each file
SELECT path,
       regexp_extract(path, '([^/]+)-([0-9]+)/[^/]*$', 1) AS topic,
       CAST(regexp_extract(path, '([^/]+)-([0-9]+)/[^/]*$', 2) AS INT) AS partition,
       CAST(regexp_extract(path, '([0-9]{20})[.][^/]*$', 1) AS BIGINT) AS base_offset
FROM segments
WHERE path RLIKE '[^/]+-[0-9]+/[0-9]{20}[.]log$'
ORDER BY topic, partition, base_offset;
