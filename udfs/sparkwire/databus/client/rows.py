"""Record the callbacks of a consumer that never fails, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparkwire.databus.client.consumer import CALLBACKS, Consumer
from sparkwire.databus.client.data_event import DataEvent
from sparkwire.databus.client.failures import UnreadableEventError, error_of
from sparkwire.databus.client.page import CHECKPOINT, DATA, ERROR, Page
from sparkwire.databus.client.progress import is_online
from sparkwire.databus.client.result import Result

SCHEMA: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("n", pa.int64()),
        ("callback", pa.string()),
        ("scn", pa.int64()),
        ("source", pa.string()),
        ("event", pa.binary()),
    ]
)
_WITH_EVENT: Final = ("on_data_event", "on_error")


class Recorder(Consumer):
    """A consumer that always succeeds and records its callbacks."""

    def __init__(self, stream: str | None, names: Mapping[int, str]) -> None:
        self._stream, self._names = stream, {str(id): name for id, name in names.items()}
        self._n = count()
        self._rows: list[tuple[int, str, int | None, str | None]] = []
        for callback in CALLBACKS:
            setattr(self, callback, partial(self._note, callback))

    def _note(self, callback: str, *args: Any) -> Result:
        scn: int | None = None
        source: str | None = None
        match args:
            case (DataEvent() as event,):
                scn, source = event.sequence, str(event.src_id)
            case (int(given),):
                scn = given
            case (str(name), _):
                source = name
        self._rows.append((next(self._n), callback, scn, source and self._names.get(source, source)))
        return Result.SUCCESS

    def batch(self, page: Page | None = None) -> pa.RecordBatch:
        """The callbacks since the last call, in order; ``page`` has their events."""
        rows, self._rows = self._rows, []
        numbers, callbacks, scns, sources = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
        at = iter([] if page is None else np.flatnonzero((page.kinds == DATA) | (page.kinds == ERROR)).tolist())
        taken = pa.array([next(at) if callback in _WITH_EVENT else None for callback in callbacks], pa.int64())
        events = pa.nulls(len(rows), pa.binary()) if page is None else page.events.take(taken).cast(pa.binary())
        columns = [[self._stream] * len(rows), numbers, callbacks, scns, sources, events]
        return pa.record_batch(columns, schema=SCHEMA)


def readable(page: Page) -> Page:
    """The page without control events at which a client fails: bootstrap checkpoints and unreadable errors."""
    control = np.flatnonzero((page.kinds == CHECKPOINT) | (page.kinds == ERROR))
    rejected = [row for row in control.tolist() if not _is_readable(page, row)]
    if not rejected:
        return page
    kept = np.ones(page.rows, np.bool_)
    kept[rejected] = False
    return Page(page.events.filter(pa.array(kept)))


def _is_readable(page: Page, row: int) -> bool:
    payload = page.values("value")[row]
    if page.kinds[row] == CHECKPOINT:
        return is_online(payload)
    try:
        error_of(payload or b"")
    except UnreadableEventError:
        return False
    return True
