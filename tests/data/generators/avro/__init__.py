"""Avro data and what Avro's Java reads from them; a datum behind what each registry's own code puts around it.

`Golden` writes `golden.jsonl.xz` from the schemas in `schemas.tsv.xz`, `WireFormats` writes `wire_formats.jsonl.xz`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.data.generators.comparison import Compared, compare_lines, made_lines, stored_lines
from tests.data.generators.programs import output_of
from tests.support import DATA

HERE = Path(__file__).parent
AVRO = "org.apache.avro:avro:1.12.1"
SERDES = (
    "io.apicurio:apicurio-registry-serdes-avro-serde:2.6.5.Final",
    "software.amazon.glue:schema-registry-serde:1.1.20",
)
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def make(place: Path) -> Iterator[Compared]:
    """Run each program; what it wrote is in ``place``."""
    schemas, golden, wire_formats = (place / name for name in ("schemas.tsv", "golden.jsonl", "wire_formats.jsonl"))
    schemas.write_text("\n".join(stored_lines(DATA / "avro" / "schemas.tsv.xz")) + "\n", "utf-8")
    output_of(HERE / "Golden.java", (str(schemas), str(golden)), AVRO)
    yield _compared(golden, _without_uuids)
    output_of(HERE / "WireFormats.java", (str(wire_formats),), *SERDES)
    yield _compared(wire_formats, json.loads)


def _compared(made: Path, essence: Any) -> Compared:
    stored = stored_lines(DATA / "avro" / f"{made.name}.xz")
    return compare_lines(made.name, stored, made_lines(made), essence)


def _without_uuids(line: str) -> Any:
    """Of a line of golden data: they are random ones, of no seed."""
    entry = json.loads(_UUID.sub(b"", line.encode()))
    data = [(_UUID.sub(b"", base64.b64decode(written)), read) for written, read in entry.pop("data")]
    return entry, data
