"""Files as tables: Kafka's segments and Databus event files, read where they lie, of any size, in bounded memory.

No Spark here. `storage` finds files and reads ranges of them, `naming` says what a broker's names mean, `log` walks the
entries of a segment a chunk at a time, `seek` finds an offset or a timestamp, `splits` where a file can be cut, `transactions`
what a `read_committed` consumer does not get, `kafka_log` plans and reads all of it as Arrow record batches.
"""
