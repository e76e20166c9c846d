-- Is a column of events really one event a row?
--
-- Reads   stream(path STRING, content BINARY)
--
-- A function of one event reads the first event of a value and ignores the bytes after it. For a whole file, it returns the
-- fields of the first event. If more_than_one is true, split the value first: inline(dbus_events(content)).

-- The number of events in each value
SELECT regexp_extract(path, '[^/]+$', 0) AS file, dbus_is_valid(content) AS first_is_valid,
       length(content) AS bytes, dbus_length(content) AS bytes_of_first,
       length(content) > dbus_length(content) AS more_than_one, size(dbus_events(content)) AS events
FROM stream
ORDER BY file;
