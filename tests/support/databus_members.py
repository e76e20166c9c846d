"""A Databus source with an Avro schema: histories of its table in a relay's form."""

from __future__ import annotations

import hashlib
import io
import json

import fastavro

from tests.support.client_history import History
from tests.support.client_streams import event

MEMBER = (
    '{"type":"record","name":"Member","namespace":"com.shop","fields":[{"name":"id","type":["null","long"]},'
    '{"name":"name","type":["null","string"]}],"meta":"pk=id;"}'
)
MEMBER_ID = hashlib.md5(MEMBER.encode()).digest()
_PARSED = fastavro.parse_schema(json.loads(MEMBER))


def member(id: int, name: str) -> bytes:
    """The payload of a row."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED, {"id": id, "name": name})
    return out.getvalue()


class Members(History):
    """A history of one source; its deletes have no payload."""

    def change(self, scn: int) -> bytes:
        key = (40, self.random.randrange(8))
        if self.random.random() < 0.3:
            self.table.pop(key, None)
            return event(scn, *key, opcode=2, schema_id=MEMBER_ID)
        self.table[key] = self.random.randbytes(2).hex().encode()
        return event(scn, *key, member(key[1], self.table[key].decode()), schema_id=MEMBER_ID)
