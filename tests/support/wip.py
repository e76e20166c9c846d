import json

from sparkwire.core.table_names import table_name
from tests.support.oracles.mysql_values import sql_type


def declared(records, format, table):
    out = {}
    for r in records:
        m = json.loads(r.value or b"null")
        if m and m.get("mysqlType") and table_name(m["database"], m["table"]) == table:
            for k, v in m["mysqlType"].items():
                if v == "boolean":
                    v = "tinyint"
                if not out.get(k, "").startswith("varchar"):
                    out[k] = v
    return {k: "BINARY" if v in ("point", "geometry") else sql_type(v) for k, v in out.items()}


def tables(records, format):
    return sorted(
        {
            table_name(m["database"], m["table"])
            for r in records
            if (m := json.loads(r.value or b"null")) and m.get("mysqlType")
        }
    )
