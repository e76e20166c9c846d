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

The names of fields above are fixed, the order of keys is not; keys that are not known are passed over. What the
source leaves open is answered so:

- JSON is RFC 8259 to the letter: NaN, comments and trailing commas are `BAD_JSON`, so are bytes that are not UTF-8.
  Nesting has no limit;
- if a key repeats in an object, the last wins, whatever the first had;
- of a message that is `BAD_JSON` the fields are answered that are whole before the corruption;
- half a surrogate pair, escaped, reads as U+FFFD, and is that in the text of an image;
- JSON null is absent, but for the values of an image, where a map has the key with NULL;
- a text field whose value is no string is answered as the JSON that is written there; a time that is not an integer
  is NULL, and only eventTime's is an error;
- an image that is there and is not an object, or whose dataColumn is none, is `BAD_FIELD`;
- an op of another JSON type than a string is an unknown one.

Source: Alibaba Cloud, DataWorks, "Appendix: DataHub message formats".
"""

from __future__ import annotations

from sparkwire.datahub.api import columns, rows

__all__ = ["columns", "rows"]


def __dir__() -> list[str]:
    return list(__all__)
