-- The windows of Databus streams and how each of them ended, by window functions alone.
--
-- Reads   events(stream STRING, position, event BINARY), position being anything that orders a stream's events
-- Gives   windows(stream, window BIGINT, start_scn BIGINT, scn BIGINT, events BIGINT, sources ARRAY<INT>, state STRING,
--                 again BOOLEAN)
--
-- A window begins with the first data event after an end-of-period event or an SCN regress. What its state says:
--
--   COMPLETE      it has data events and an end: a consumer hears of its start, its sources, its end and a checkpoint
--   EMPTY         an end alone: a consumer hears of the checkpoint
--   ROLLED_BACK   an SCN regress cut it: a consumer is rolled back
--   OPEN          its end is not there yet
--
-- `again` is true where the stream has ended a window with this scn, or a higher one, before: after a regress, or where a
-- relay has sent windows twice. `scn` is the one to remember a window by; it is NULL where there is no end.

-- Every window, and how it ended
CREATE OR REPLACE TEMPORARY VIEW windows AS
WITH told AS (
  SELECT stream, position, dbus_src_id(event) AS src_id, dbus_sequence(event) AS scn
  FROM events
  WHERE dbus_is_valid(event)),
numbered AS (
  SELECT *, count_if(src_id IN (-2, -51)) OVER (
    PARTITION BY stream ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS window
  FROM told),
grouped AS (
  SELECT stream, window,
         min_by(scn, position) FILTER (WHERE src_id >= 0) AS start_scn,
         max(scn) FILTER (WHERE src_id = -2) AS scn,
         count_if(src_id >= 0) AS events,
         array_sort(collect_set(src_id) FILTER (WHERE src_id >= 0)) AS sources,
         bool_or(src_id = -51) AS regressed
  FROM numbered
  GROUP BY stream, window)
SELECT stream, window, start_scn, scn, events, sources,
       CASE WHEN regressed THEN 'ROLLED_BACK' WHEN scn IS NULL THEN 'OPEN' WHEN events = 0 THEN 'EMPTY' ELSE 'COMPLETE' END AS state,
       coalesce(scn <= max(scn) OVER (
         PARTITION BY stream ORDER BY window ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS again
FROM grouped
WHERE events > 0 OR scn IS NOT NULL;

-- How the streams are
SELECT stream, state, count(*) AS windows, sum(events) AS events, count_if(again) AS again
FROM windows
GROUP BY ALL
ORDER BY ALL;
