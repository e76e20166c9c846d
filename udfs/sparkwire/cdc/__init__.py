"""Change data of every capture system as one table: its columns, its orders, and the decoders that fill it.

    events of Databus      `databus_changes`   ┐
    messages of DataHub    `datahub_changes`   ├→ `change_columns` → `sparkwire.current`, `sparkwire.merge`
    messages of Debezium   `debezium_changes`  ┘

A row is one change of one row of a table, or a TRUNCATE of the whole table. `_order_` puts the changes of a key in order,
so the order of the rows never matters, nor how often a change arrives.
"""
