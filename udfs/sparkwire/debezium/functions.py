"""The table of Debezium's functions, which defines registration, docs and tests."""

from __future__ import annotations

from typing import Final

from sparkwire.core.builders import scalar_functions, struct_function
from sparkwire.core.function import Format
from sparkwire.debezium.message_fields import FIELDS
from sparkwire.debezium.scanned_messages import messages_of

_UPDATE: Final = (
    b'{"before":{"id":7,"note":"new"},"after":{"id":7,"note":"paid"},"source":{"version":"3.3.0.Final",'
    b'"connector":"postgresql","name":"shop","ts_ms":1714557600000,"snapshot":"false","db":"shop",'
    b'"sequence":"[\\"75862400\\",\\"75862544\\"]","ts_us":1714557600000125,"ts_ns":1714557600000125000,'
    b'"schema":"public","table":"orders","txId":571,"lsn":75862544,"xmin":null},"transaction":{"id":"571:75862544",'
    b'"total_order":1,"data_collection_order":1},"op":"u","ts_ms":1714557600250,"ts_us":1714557600250000,'
    b'"ts_ns":1714557600250000000}'
)
_FLATTENED: Final = (
    b'{"id":7,"note":"paid","__deleted":"false","__op":"u","__table":"orders","__source_ts_ms":1714557600000}'
)
_WITH_SCHEMA: Final = (
    b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},{"type":"int32","optional":true,'
    b'"name":"io.debezium.time.Date","version":1,"field":"day"}],"optional":false,"name":"shop.public.orders.Value"},'
    b'"payload":{"id":7,"day":19844}}'
)
SAMPLES: Final = {"debezium": _UPDATE, "debezium_flattened": _FLATTENED, "debezium_schemas": _WITH_SCHEMA}

FUNCTIONS: Final = (
    *scalar_functions("debezium_{}(value BINARY | STRING)", FIELDS, messages_of),
    struct_function(
        "debezium_change(value BINARY | STRING)",
        FIELDS,
        messages_of,
        "All fields above as one STRUCT, decoded in a single pass, named as the functions are without `debezium_`.",
        "debezium_change(debezium).operation -> UPDATE",
    ),
)

ARGUMENTS: Final = {"value": "The value of one message, in JSON: with its schema or without, an envelope or flattened."}
FORMAT: Final = Format("debezium", "Debezium", "debezium_", FUNCTIONS, SAMPLES, "debezium_change", arguments=ARGUMENTS)
