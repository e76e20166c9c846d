"""Debezium: the envelope as a declaration, in each of its forms. See `sparkwire.debezium` for the messages.

`read_debezium` reads the rows, with the same `ROLES`. It has separate code for flattened rows, tombstones and placeholders.
"""

from __future__ import annotations

from typing import Final

from sparkwire.changes.systems import ROW, TEXT, Marks, System
from sparkwire.debezium.layout import CLOUD, OPERATIONS, PLAIN, ROLES, WRAPPED, path_in
from sparkwire.json.types import type_of

_NOT_IN_CLOUD_EVENTS: Final = ("source", "time")
"""roles whose values are texts there, instead of an object and a number"""


def _envelope(title: str, form: int, marks: Marks) -> System:
    roles = [role for role in ROLES if form != CLOUD or role not in _NOT_IN_CLOUD_EVENTS]
    fields = {"specversion": "specversion"} if form == CLOUD else {}
    fields |= {role: path_in(form, ROLES[role][0]) for role in roles}
    return System("debezium", title, fields, {each.op: each.name for each in OPERATIONS}, (marks,), type_of)


PLAIN_ENVELOPE, ENVELOPE_WITH_SCHEMA = (
    _envelope("Debezium", form, {"op": TEXT, "source": ROW}) for form in (PLAIN, WRAPPED)
)
CLOUD_EVENT: Final = _envelope("CloudEvents of Debezium", CLOUD, {"specversion": TEXT, "op": TEXT})
