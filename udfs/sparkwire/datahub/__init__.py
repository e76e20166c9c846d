"""Alibaba Cloud DataHub: change messages of a BLOB topic, as Data Integration writes them.

    message   one JSON object in UTF-8; a byte-order mark before it is tolerated
      schema    dataColumn [{name, type}]      every column of the table; type LONG, DOUBLE, BOOLEAN, STRING, DATE, BYTES
                primaryKey [name]
                source     {dbType, dbVersion, dbName, schemaName, tableName}
      payload   op                             see `layout.OPERATIONS`, case-sensitive
                sequenceId                     digits, in quotes or bare; both halves of an update have the same
                timestamp  {eventTime, systemTime, checkpointTime}     [ms since epoch]
                before     {dataColumn {name: value}}                  for DELETE and UPDATE_BEFOR
                after      {dataColumn {name: value}}                  for INSERT and UPDATE_AFTER
                ddl        {text, ddlMeta}                             ddlMeta in Base64
      version

In an image BYTES are Base64, a DATE is an integer [ms since epoch], everything else is plain JSON.

The names of the fields above are fixed. The order of keys is not; unknown keys are ignored. The source leaves some cases open:

- JSON is RFC 8259 to the letter: NaN, comments and trailing commas are `BAD_JSON`, so are bytes that are not UTF-8.
  Nesting has no limit;
- if a key repeats in an object, the last wins, whatever the first had;
- a message that is `BAD_JSON` returns the fields that are complete before the corruption;
- half a surrogate pair, escaped, reads as U+FFFD, also in the text of an image;
- a JSON null is a missing field, except in an image, where a map has the key with NULL;
- a text field whose value is not a string returns its JSON text;
- a time that is not an integer is NULL, and only eventTime's is an error;
- an image that is not an object, or whose dataColumn is not, is `BAD_FIELD`;
- an op that is not a string is unknown.

Source: Alibaba Cloud, DataWorks, "Appendix: DataHub message formats".
"""

from __future__ import annotations

from sparkwire.datahub.api import columns, rows

__all__ = ["columns", "rows"]


def __dir__() -> list[str]:
    return list(__all__)
