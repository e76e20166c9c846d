"""Change data of every capture system in one kind of table: its columns, its orders, and the decoders that fill it.

    events of Databus      `databus_changes`   ┐
    messages of DataHub    `datahub_changes`   ├→ `change_columns` → `sparkwire.current`, `sparkwire.merge`
    messages of Debezium   `debezium_changes`  ┘

A row is one change of one table row, or a TRUNCATE of the whole table. `_order_` orders the changes of a key. So the result does
not depend on the order in which changes arrive, or on duplicates.
"""
