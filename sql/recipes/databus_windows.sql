-- The windows of Databus streams and how each of them ended, with window functions only.
--
-- Reads   events(stream STRING, position, event BINARY), where position is anything that orders a stream's events
-- Gives   windows(stream, window BIGINT, start_scn BIGINT, scn BIGINT, events BIGINT, sources ARRAY<INT>, state STRING,
--                 again BOOLEAN)
--
-- A window begins with the first data event after an end-of-period event or an SCN regress. The column state is
--
--   COMPLETE      if it has data events and an end: a consumer gets its start, its sources, its end and a checkpoint
--   EMPTY         if it has only an end: a consumer gets the checkpoint
--   ROLLED_BACK   if an SCN regress cut it: a consumer gets on_rollback
--   OPEN          if it has no end yet
--
-- `again` is true if an earlier window of the stream ended with this SCN or a higher one: after a regress, or if a relay sent
-- windows twice. `scn` identifies the window; it is NULL if the window has no end.

-- Every window, and how it ended
CREATE OR REPLACE TEMPORARY VIEW windows AS
WITH valid AS (
  SELECT stream, position, dbus_src_id(event) AS src_id, dbus_sequence(event) AS scn
  FROM events
  WHERE dbus_is_valid(event)),
numbered AS (
  SELECT *, count_if(src_id IN (-2, -51)) OVER (
    PARTITION BY stream ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS window
  FROM valid),
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

-- Windows of each stream by state
SELECT stream, state, count(*) AS windows, sum(events) AS events, count_if(again) AS again
FROM windows
GROUP BY ALL
ORDER BY ALL;
