"""DataHub's writer compared with JSON libraries that write the same messages, one by one."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from benchmarks.datahub import messages
from benchmarks.report import Row, faster
from benchmarks.timing import amount, interleave
from sparkwire import FUNCTIONS

MESSAGES = amount(50_000, trial=1000)
LOOPED = amount(5_000, trial=500)  # messages that the libraries write; their time is scaled
AT_LEAST = {
    "json": 3.0,
    "msgspec": 0.5,
    "orjson": 0.5,
}  # the last two get finished trees, which take far longer to build


def encoders() -> Iterator[tuple[str, Callable[[Any], bytes]]]:
    """The installed JSON libraries."""
    yield "json", lambda tree: json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()
    with suppress(ImportError):
        yield "msgspec", importlib.import_module("msgspec.json").Encoder().encode
    with suppress(ImportError):
        yield "orjson", importlib.import_module("orjson").dumps


def rows() -> list[Row]:
    """The claims about DataHub's writer; the libraries get existing trees of Python objects."""
    blobs = messages(MESSAGES)
    changes = FUNCTIONS["datahub_change"].decode(blobs)
    trees = [json.loads(blob) for blob in blobs[:LOOPED].to_pylist()]
    written = FUNCTIONS["to_datahub_blob"].decode(changes)
    assert [json.loads(blob) for blob in written[:LOOPED].to_pylist()] == trees
    libraries = dict(encoders())
    times = interleave(
        {"ours": lambda: FUNCTIONS["to_datahub_blob"].decode(changes)}
        | {name: looped(encode, trees) for name, encode in libraries.items()}
    )
    ours = times["ours"].per(MESSAGES)
    work = "columns to messages of about 550 bytes"
    return [
        faster(work, ours, f"{name}, message by message", times[name].per(LOOPED), AT_LEAST[name], 1, "messages")
        for name in libraries
    ]


def looped(encode: Callable[[Any], bytes], trees: list[Any]) -> Callable[[], list[bytes]]:
    return lambda: [encode(tree) for tree in trees]
