"""The comparison of `make golden` finds all real differences, and no others."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.data.generators.debezium.comparison import REDELIVERED, differences
from tests.support import debezium_golden as golden

COMPARED = ("json", "json-schemas", "alt-json", "ext-json", "avro", "flat-rewrite-avro")
"""the variants with a change, and two without"""


def test_differences_are_found_except_those_of_time() -> None:
    stored = golden.files("postgres")
    made = dict(stored)
    change(made, "json", lambda value: value | {"ts_ms": 1})
    change(made, "json-schemas", lambda value: value | {"payload": value["payload"] | {"op": "?"}})
    made["messages.alt-json.jsonl"] = cut(stored["messages.alt-json.jsonl"])
    made["messages.avro.jsonl"] = stored["messages.avro.jsonl"].replace(b'"__debezium', b'"__other')
    made["truth/point03.jsonl"] = stored["truth/point03.jsonl"].replace(b'"raven', b'"robin')
    result = list(differences(stored, made, COMPARED))
    places = {sentence.partition(":")[0].partition(",")[0] for sentence in result}
    assert places == {"json-schemas", "alt-json", "avro", "truth/point03.jsonl"}
    assert [sentence.count('"?"') for sentence in result if sentence.startswith("json-schemas")] == [1]
    assert any(sentence.startswith("alt-json, shop.app.") and "made were" in sentence for sentence in result)


def test_a_connector_may_repeat_more_messages() -> None:
    """Point 7 is the last before the crash; the stored messages continue with point 6."""
    stored = golden.files("mariadb")
    name = f"messages.{REDELIVERED}.jsonl"
    lines = stored[name].splitlines(keepends=True)
    points = [k for k, line in enumerate(lines) if b'"shop.shopdb.sync_point"' in line]
    again = points[8]

    def differing(changed: list[bytes]) -> list[str]:
        return list(differences(stored, {**stored, name: b"".join(changed)}, [REDELIVERED]))

    assert differing([*lines[:again], lines[points[5]], *lines[again:]]) == []
    assert differing(lines[:again] + lines[again + 1 :]) == []
    assert differing([*lines[:again], lines[points[10]], *lines[again:]]), "a message of later"
    assert differing(lines[: points[-1]] + lines[points[-1] + 1 :]), "a message less at the end"


def change(files: dict[str, bytes], variant: str, changed: Any) -> None:
    """Change the first message of a variant."""
    name = f"messages.{variant}.jsonl"
    first, _, rest = files[name].partition(b"\n")
    line = json.loads(first)
    value = changed(json.loads(base64.b64decode(line["value_b64"])))
    line["value_b64"] = base64.b64encode(json.dumps(value).encode()).decode()
    files[name] = json.dumps(line).encode() + b"\n" + rest


def cut(lines: bytes) -> bytes:
    """Remove the last message of a table."""
    kept = lines.splitlines(keepends=True)
    last = max(k for k, line in enumerate(kept) if b'"shop.app.customers"' in line)
    return b"".join(kept[:last] + kept[last + 1 :])
