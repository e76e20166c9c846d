"""Oracle GoldenGate: operations as JSON rows, as its Kafka handler and Apache Flink write them.

    op_type    I, U, D, T
    before, after    {column: value}: the old and the new row; columns that the trail does not have are absent, or null beside
                     ``<column>_isMissing``, which is true
    table      ``schema.table``, or ``database.schema.table``
    op_ts, the time of the change, in UTC by default; pos, the position in the trail; primary_keys [column]

Source: Apache Flink 2.3.0's ``ogg-json``.
"""

from __future__ import annotations

from sparkwire.changes.columns import DELETE, INSERT, TRUNCATE, UPDATE
from sparkwire.changes.systems import ANYTHING, TEXT, System
from sparkwire.json.mysql_types import of_sql

OGG: System = System(
    name="ogg",
    title="Oracle GoldenGate",
    fields={
        "op": "op_type",
        "after": "after",
        "before": "before",
        "table": "table",
        "keys": "primary_keys",
        "time": "op_ts",
    },
    operations={"I": INSERT, "U": UPDATE, "D": DELETE, "T": TRUNCATE},
    marks=({"op": TEXT, "after": ANYTHING}, {"op": TEXT, "before": ANYTHING}, {"op": TEXT, "table": TEXT}),
    type_of=of_sql,
    messages="[rows in JSON](formats/ogg.md) of Oracle GoldenGate, also Flink's `ogg-json`",
    also_pass="`columns`; `keys`, unless the messages have key names",
    example='{"table":"d.t","op_type":"I","op_ts":"2024-01-31 01:02:03.5","primary_keys":["id"],"after":{"id":1}}',
    time_unit="text",
    table_has_schema=True,
    missing_mark="_isMissing",
)
