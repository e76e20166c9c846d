"""Change data of every capture system in one kind of table: its columns, its orders, and the decoders that fill it.

    events of Databus        `databus`                                       ┐
    messages of Debezium     `read_debezium` → `TableRows` → `change_batch`  ├→ `sparkwire.current`, `sparkwire.merge`
    messages in other JSON   `System` → `read_messages` ↗                    ┘

A row is one change of one table row, or a TRUNCATE of the whole table. `_order_` orders the changes of a key. So the result does
not depend on the order in which changes arrive, or on duplicates. Each message is a right row, a row with an error, or one of the
few that are left out by name.

Read the modules in this order:

    columns, orders                  the change table
    records                          the input: columns of Kafka records, and what the caller says of them
    systems, canal, maxwell, ...     a capture system as a declaration; `declarations` lists all
    debezium                         its envelope as a declaration, in each form
    read_messages, read_debezium     the rows in messages
    table_rows                       typed rows, keys, orders and errors: the part that all systems share
    foreign, unread                  which system a message is of; those that no format reads
    survey, formats                  what a batch says of itself; the decoder of a format
    explain                          messages for a person
    fold                             what all changes of a key say together: its row, and values that move between keys
    delta_log                        the log of a merged table at a path, by delta-rs
"""
