"""The callbacks of a consumer to whom everything succeeds, as rows: the event model for SQL, without a call.

Each event causes up to five callbacks, in this order: the rollback of a regress before it; the end of the source or the start
of the window; the start of the source or the end of the window; the event itself, the checkpoint or the error; a checkpoint
in the middle of a large window. What an event causes follows from the events before it in the stream, of which the last
data event and the last end or regress are enough: so whole batches are done at once, and one event is carried over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import from_codes, primitive
from sparkwire.databus.client.consumer import CALLBACKS
from sparkwire.databus.client.page import CHECKPOINT, DATA, END_OF_PERIOD, ERROR, SCN_REGRESS, Page
from sparkwire.databus.client.progress import is_online
from sparkwire.databus.client.settings import THRESHOLD

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

(
    _START,
    _START_WINDOW,
    _START_SOURCE,
    _DATA_EVENT,
    _END_SOURCE,
    _END_WINDOW,
    _CHECKPOINT,
    _ROLLBACK,
    _ERROR,
    _STOP,
) = range(len(CALLBACKS))
_SLOTS: Final = 5
_NONE: Final = -1

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]


class _Before(NamedTuple):
    """What the events so far leave behind."""

    kind: int = END_OF_PERIOD
    """of the last one: DATA in a window, SCN_REGRESS before its rollback, else END_OF_PERIOD"""
    source: int = 0
    start: int = 0
    """scn of the window's start"""
    size: int = 0
    """[bytes] since the last checkpoint"""


class CallbackRows:
    """The rows of one stream, a page at a time."""

    def __init__(self, stream: str | None, names: Mapping[int, str], threshold: int = THRESHOLD) -> None:
        self.stream, self.names, self.threshold = stream, names, threshold
        self._before = _Before()
        self._n = 0

    def started(self) -> pa.RecordBatch:
        """The row of `on_start_consumption`."""
        self._n = 1
        nothing: Sequence[None] = [None]
        return pa.record_batch([[self.stream], [0], [CALLBACKS[_START]], *[nothing] * 3], schema=SCHEMA)

    def rows(self, page: Page) -> pa.RecordBatch:
        """The callbacks that the events of the page cause."""
        before = self._before
        kinds = np.concatenate(([np.int8(before.kind)], page.kinds))
        sources = np.concatenate(([before.source], page.src_ids))
        index = np.arange(len(kinds))
        data = kinds == DATA
        resets = (kinds == END_OF_PERIOD) | (kinds == SCN_REGRESS)
        # Of the events before each event, itself not among them:
        last_data = np.maximum.accumulate(np.where(data, index, _NONE))[:-1]
        last_reset = np.maximum.accumulate(np.where(resets, index, _NONE))[:-1]
        open_before = last_data > last_reset
        source_before = sources[np.maximum(last_data, 0)]
        codes = self._codes(page, kinds, open_before, source_before)
        opened = codes[:, 1] == _START_WINDOW
        starts = self._window_starts(page, opened)
        self._threshold_checkpoints(page, codes, starts)
        batch = self._batch(page, codes, source_before, starts)
        self._remember(kinds, sources, starts, data, resets)
        return batch

    def _codes(self, page: Page, kinds: Codes, open_before: npt.NDArray[np.bool_], source_before: Ints) -> Codes:
        """The callbacks of every event, a column a slot."""
        own, codes = kinds[1:], np.full((page.rows, _SLOTS), _NONE, np.int8)
        data, end = own == DATA, own == END_OF_PERIOD
        codes[kinds[:-1] == SCN_REGRESS, 0] = _ROLLBACK
        changed = data & open_before & (page.src_ids != source_before)
        opened = data & ~open_before
        ended = end & open_before
        codes[opened, 1] = _START_WINDOW
        codes[changed | ended, 1] = _END_SOURCE
        codes[changed | opened, 2] = _START_SOURCE
        codes[ended, 2] = _END_WINDOW
        codes[data, 3] = _DATA_EVENT
        codes[ended | (end & (page.scns > 0)), 3] = _CHECKPOINT
        codes[own == ERROR, 3] = _ERROR
        for row in np.flatnonzero((own == CHECKPOINT) & (page.scns > 0)):
            if is_online(page.values("value")[row]):
                codes[row, 3] = _CHECKPOINT
        return codes

    def _window_starts(self, page: Page, opened: npt.NDArray[np.bool_]) -> Ints:
        """The scn of the start of the window in progress at every event."""
        at = np.maximum.accumulate(np.where(opened, np.arange(page.rows), _NONE))
        return np.where(at >= 0, page.scns[np.maximum(at, 0)], self._before.start)

    def _threshold_checkpoints(self, page: Page, codes: Codes, starts: Ints) -> None:
        """Checkpoints in the middle of windows, where more than the threshold came after the last one."""
        ends = page.offsets[1:].astype(np.int64) - int(page.offsets[0]) + self._before.size
        natural = np.flatnonzero(codes[:, 3] == _CHECKPOINT)
        bounds = np.concatenate(([_NONE], natural, [page.rows]))
        sizes = np.concatenate(([0], ends[natural]))  # at the last checkpoint before each stretch
        last = ends[np.maximum(bounds[1:] - 1, 0)] if page.rows else sizes
        for k in np.flatnonzero(last - sizes > self.threshold):
            sizes[k] = self._within(page, codes, ends, int(bounds[k]) + 1, int(bounds[k + 1]), int(sizes[k]))
        self._left = int(ends[-1] - sizes[-1]) if page.rows else self._before.size

    def _within(self, page: Page, codes: Codes, ends: Ints, first: int, last: int, size: int) -> int:
        """Checkpoints of one stretch between two; the size at the last of them."""
        while True:
            row = first + int(np.searchsorted(ends[first:last], size + self.threshold, side="right"))
            if row >= last:
                return size
            if page.kinds[row] == DATA:
                codes[row, 4] = _CHECKPOINT
            first, size = row + 1, int(ends[row])

    def _batch(self, page: Page, codes: Codes, source_before: Ints, starts: Ints) -> pa.RecordBatch:
        flat = codes.reshape(-1)
        chosen = np.flatnonzero(flat != _NONE)
        rows, slots, callbacks = chosen // _SLOTS, chosen % _SLOTS, flat[chosen]
        count = len(chosen)
        numbers = np.arange(self._n, self._n + count)
        self._n += count
        has_scn = callbacks != _ERROR
        for callback in (_START_SOURCE, _END_SOURCE, _DATA_EVENT):
            has_scn &= (callbacks != callback) | (callback == _DATA_EVENT)
        scns = np.where(slots == 4, starts[rows], page.scns[rows])
        ended = callbacks == _END_SOURCE
        sources = np.where(ended, source_before[rows], page.src_ids[rows])
        has_source = ended | (callbacks == _START_SOURCE) | (callbacks == _DATA_EVENT)
        shown = (callbacks == _DATA_EVENT) | (callbacks == _ERROR)
        events = page.events.take(pa.array(rows, mask=~shown))
        columns = [
            pa.repeat(pa.scalar(self.stream, pa.string()), count),
            primitive(numbers),
            from_codes(callbacks, CALLBACKS),
            primitive(scns, has_scn),
            self._source_names(sources, has_source),
            events.cast(pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _source_names(self, sources: Ints, there: npt.NDArray[np.bool_]) -> pa.StringArray:
        ids, codes = np.unique(sources, return_inverse=True)
        names = pa.array([self.names.get(int(id), str(id)) for id in ids], pa.string())
        return names.take(pa.array(codes, mask=~there))

    def _remember(
        self,
        kinds: Codes,
        sources: Ints,
        starts: Ints,
        data: npt.NDArray[np.bool_],
        resets: npt.NDArray[np.bool_],
    ) -> None:
        last_data = int(np.flatnonzero(data)[-1]) if data.any() else _NONE
        last_reset = int(np.flatnonzero(resets)[-1]) if resets.any() else _NONE
        kind = END_OF_PERIOD
        if kinds[-1] == SCN_REGRESS:
            kind = SCN_REGRESS
        elif last_data > last_reset:
            kind = DATA
        source = int(sources[max(last_data, 0)])
        start = int(starts[-1]) if len(starts) else self._before.start
        self._before = _Before(kind, source, start, self._left)


def stretches(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[tuple[object, ...], int, int]]:
    """Where rows with equal keys begin and end, and those keys; for batches whose rows are sorted by them."""
    if not batch.num_rows:
        return
    bounds = {0, batch.num_rows}
    for key in keys:
        runs = pc.run_end_encode(batch.column(key))
        bounds.update(runs.run_ends.to_pylist())
    edges = sorted(bounds)
    for first, last in pairwise(edges):
        yield tuple(batch.column(key)[first].as_py() for key in keys), first, last
