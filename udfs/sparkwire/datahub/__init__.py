"""Alibaba Cloud DataHub: change messages of a BLOB topic, as Data Integration writes them.

    message   one JSON object in UTF-8; a byte-order mark before it is tolerated
      schema    dataColumn [{name, type}]      every column of the table; type LONG, DOUBLE, BOOLEAN, STRING, DATE, BYTES
                primaryKey [name]
                source     {dbType, dbVersion, dbName, schemaName, tableName}
      payload   op                             one of `layout.OPERATIONS`, case-sensitive
                sequenceId                     digits, quoted or not; both halves of an update have the same
                timestamp  {eventTime, systemTime, checkpointTime}     [ms since epoch]
                before     {dataColumn {name: value}}                  for DELETE and UPDATE_BEFOR
                after      {dataColumn {name: value}}                  for INSERT and UPDATE_AFTER
                ddl        {text, ddlMeta}                             ddlMeta in Base64
      version

In an image, BYTES are Base64, a DATE is an integer [ms since epoch], and every other value is plain JSON.

The fields above have fixed names. Keys may come in any order; unknown keys have no effect. The source leaves some cases open.
This reader handles them as follows:

- JSON must conform to RFC 8259: NaN, comments, trailing commas and bytes that are not UTF-8 are `BAD_JSON`. Nesting has no
  limit;
- if a key repeats in an object, the last value wins;
- for a `BAD_JSON` message, the functions return the fields that are complete before the corruption;
- an escaped lone surrogate becomes U+FFFD, also in the text of an image;
- a JSON null counts as a missing field, except in an image: there the map has the key with the value NULL;
- a text field whose value is not a string returns its JSON text;
- a time that is not an integer is NULL; it is an error only for eventTime;
- an image that is not an object, or whose dataColumn is not, is `BAD_FIELD`;
- an op that is not a string is an unknown op.

`sparkwire.changes` and `sparkwire.datahub.rows` read the rows of a table from these messages by the same rules:

- a message that does not name its table or its database may be of any, so it is an error in each table;
- so are a corrupt message and a message of another system, such as one without a payload. An image that is not an object is
  `MISSING_FIELD`;
- the name ``a.t`` stands for a database or a schema ``a``;
- an image without its key, or with a key that does not fit its type, is an error. So is an INSERT with both images;
- the message may declare another type for a value than that of the column. If the column's type can hold the value exactly, the
  row has it. Otherwise it is NULL, and the text is among the unexpected values;
- a DATE has the years 1 to 9999. An eventTime of other years is `BAD_FIELD`. Only `datahub.rows` needs an eventTime.

Source: Alibaba Cloud, DataWorks, "Appendix: DataHub message formats".
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
