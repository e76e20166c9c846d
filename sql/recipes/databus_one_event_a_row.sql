-- Is a column of events really one event a row?
--
-- Reads   stream(path STRING, content BINARY)
--
-- A function of one event reads the first event of whatever it gets, and bytes left over are no error: a whole file given to
-- it returns the fields of its first event. Where more_than_one is not 0, split first, with inline(dbus_events(content)).

-- Whole files given to functions of one event: how many events each value holds
SELECT regexp_extract(path, '[^/]+$', 0) AS file, dbus_is_valid(content) AS first_is_valid,
       length(content) AS bytes, dbus_length(content) AS bytes_of_first,
       length(content) > dbus_length(content) AS more_than_one, size(dbus_events(content)) AS events
FROM stream
ORDER BY file;
