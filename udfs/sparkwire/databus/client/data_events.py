"""Events of one stream: as columns for the dispatcher, and as the objects that consumers get."""

from __future__ import annotations

import datetime
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.schema import parse
from sparkwire.avro.schemas import schemas_of
from sparkwire.base.printable import printable
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import binary_of, spans_of
from sparkwire.databus import layout
from sparkwire.databus.functions import FORMAT
from sparkwire.databus.scan import Events
from sparkwire.errors import PullerRetriesExhaustedError, ScnNotFoundError

Ints = npt.NDArray[Any]

DATA, END_OF_PERIOD, CHECKPOINT, SCN_REGRESS, ERROR, OTHER = range(6)
"""Kinds of events for the dispatcher. Source id 0 is data: Databus calls it a system source, but looks it up as a source."""

ROWS: Final = 1 << 14  # rows of a page: it decodes a column that a consumer reads for this many events at once


_NO_SCHEMAS: Final[Mapping[bytes, str]] = MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """A source that a relay serves, and the schemas that its payloads may have."""

    id: int
    name: str
    schemas: Mapping[bytes, str]
    """schema as JSON text by schema id; the last one is the latest"""

    @classmethod
    def of(cls, id: int, name: str, *schemas: str) -> Source:
        """A source with its schemas, JSON texts from the oldest to the latest. Raises SchemaError if one of them is no schema.

        Their ids are the fingerprints of the texts that Avro's Java writes of them, in the version of Databus or a newer one.
        """
        places = sorted(schemas_of(schemas).keys.items(), key=lambda key: key[1])
        return cls(id, name, {key: schemas[k] for key, k in places if isinstance(key, bytes)})

    @cached_property
    def schema(self) -> str | None:
        """The latest schema, for `on_start_source` and `on_end_source`."""
        return next(reversed(list(self.schemas.values())), None)


class EventColumns(NamedTuple):
    """The fields that the dispatcher needs of every event."""

    scns: Ints
    src_ids: Ints
    partitions: Ints
    """physical partitions"""
    timestamps: Ints
    """[ns]"""


class Run(NamedTuple):
    """Consecutive data events of one source, or one control event."""

    first: int
    last: int
    """the row after the run"""
    scn: int
    """SCN of the first event, as are the fields below"""
    partition: int
    """physical partition"""
    kind: int
    src_id: int
    unknown: bool
    """whether no source has its schema id"""
    timestamp: int
    """[ns]"""
    size: int
    """total size of the events [bytes]"""


_run = partial(tuple.__new__, Run)  # avoids a call of a Python function


class Page:
    """Consecutive events of a stream, one on each row.

    Arrays hold the fields that the dispatcher needs of every event. When a consumer first reads a field of a data event, the page
    decodes the field for all events.
    """

    scns: Ints
    src_ids: Ints
    partitions: Ints
    timestamps: Ints

    def __init__(
        self,
        events: pa.BinaryArray,
        columns: EventColumns | None = None,
        schemas: Mapping[bytes, str] = _NO_SCHEMAS,
        *,
        check: bool = False,
    ) -> None:
        self.events = events
        self.rows: int = len(events)
        self.offsets: npt.NDArray[Any] = binary_of(events).offsets
        self.scns, self.src_ids, self.partitions, self.timestamps = columns or columns_of(events)
        self.kinds: npt.NDArray[np.int8] = kinds_of(self.src_ids)
        self._schemas = schemas
        self._check = check

    @cached_property
    def heads(self) -> list[int]:
        """The first rows of all runs, and the number of rows. A run is data events of one source, or one control event."""
        data = self.kinds == DATA
        head = np.ones(self.rows + 1, np.bool_)
        if self.rows > 1:
            head[1:-1] = ~(data[1:] & data[:-1]) | (self.src_ids[1:] != self.src_ids[:-1])
            if self._check:
                head[1:-1] |= self.unknown[1:] != self.unknown[:-1]
        return np.flatnonzero(head).tolist()

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """Which events have an unknown schema id; all false without ``check``."""
        if not self._check:
            return np.zeros(self.rows, np.bool_)
        schemas = self._schemas
        return np.fromiter((id not in schemas for id in self.values("schema_id")), np.bool_, self.rows)

    def runs(self, row: int) -> Iterator[Run]:
        """The runs from a row on. The row may be in the middle of a run."""
        if row == 0:
            return iter(self._runs)
        at = bisect_right(self.heads, row) - 1
        began = self._runs[at]
        scn, partition, timestamp = int(self.scns[row]), int(self.partitions[row]), int(self.timestamps[row])
        rest = began._replace(
            first=row, scn=scn, partition=partition, timestamp=timestamp, size=self.size(row, began.last)
        )
        return chain((rest,), islice(self._runs, at + 1, None))

    @cached_property
    def _runs(self) -> list[Run]:
        heads = np.array(self.heads, np.int64)
        first, last = heads[:-1], heads[1:]
        columns = (self.scns, self.partitions, self.kinds, self.src_ids, self.unknown, self.timestamps)
        sizes = (self.offsets[last] - self.offsets[first]).tolist()
        rows = zip(first.tolist(), last.tolist(), *(column[first].tolist() for column in columns), sizes, strict=True)
        return list(map(_run, rows))

    def size(self, first: int, last: int) -> int:
        """Size of the events from ``first`` to before ``last`` [bytes]."""
        return int(self.offsets[last]) - int(self.offsets[first])

    def first_beyond(self, first: int, last: int, size: int) -> int:
        """The row after the event with which the events from ``first`` on exceed ``size`` [bytes], ``last`` if none does."""
        ends = self.offsets[first + 1 : last + 1]
        return min(first + int(np.searchsorted(ends, int(self.offsets[first]) + size, side="right")) + 1, last)

    def values(self, field: str) -> list[Any]:
        """A field of `dbus_event` for every event, as Python values."""
        column = self._values.get(field)
        if column is None:
            column = FORMAT.by_name[f"dbus_{field}"].decode(self.events).to_pylist()
            self._values[field] = column
        return column

    def typed(self, row: int) -> Any:
        """The payload of a data event, decoded by its schema. It decodes all events of that schema at once.

        LookupError if no source has the event's schema id.
        """
        id = self.values("schema_id")[row]
        text = self._schemas.get(id)
        if text is None:
            name = "none" if id is None else id.hex()
            raise LookupError(printable(f"unknown schema id {name}: pass sources= with its schema"))
        decoded = self._typed.get(id)
        if decoded is None:
            rows = [k for k, schema_id in enumerate(self.values("schema_id")) if schema_id == id]
            payloads = FORMAT.by_name["dbus_value"].decode(self.events.take(pa.array(rows)))
            decoded = self._typed[id] = dict(zip(rows, records(payloads, text), strict=True))
        return decoded[row]

    @cached_property
    def _typed(self) -> dict[bytes, dict[int, Any]]:
        return {}

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        return {}


def kinds_of(src_ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """The kinds of events with these source ids."""
    kinds = np.zeros(len(src_ids), np.int8)
    control = np.flatnonzero(src_ids < 0)
    if len(control):
        ids = src_ids[control]
        chosen = [
            ids == layout.END_OF_PERIOD,
            ids == layout.CHECKPOINT,
            ids == layout.SCN_REGRESS,
            (ids >= layout.FIRST_ERROR) & (ids <= layout.LAST_ERROR),
        ]
        kinds[control] = np.select(chosen, [END_OF_PERIOD, CHECKPOINT, SCN_REGRESS, ERROR], OTHER)
    return kinds


def records(payloads: pa.BinaryArray, schema: str) -> list[Any]:
    """Avro data as Python values; None if a payload is NULL or cannot be read."""
    decoded: list[Any] = decode(_plan(schema), spans_of(payloads)).column.to_pylist()
    return decoded


@text_cache(256)
def _plan(schema: str) -> ColumnPlan:
    parsed = parse(schema)
    return plan([parsed], parsed)


def pages(
    events: pa.BinaryArray,
    columns: EventColumns | None = None,
    schemas: Mapping[bytes, str] = _NO_SCHEMAS,
    *,
    check: bool = False,
) -> Iterator[Page]:
    """Split events into pages of at most `ROWS` rows, without copying. ``check``: whether to look up every schema id."""
    for first in range(0, len(events), ROWS):
        part = None if columns is None else EventColumns(*(column[first : first + ROWS] for column in columns))
        yield Page(events.slice(first, ROWS), part, schemas, check=check)


def columns_of(events: pa.BinaryArray) -> EventColumns:
    """Read the columns from the events."""
    fields = Events(events).header.fields
    return EventColumns(
        fields["sequence"], fields["src_id"], fields["physical_partition_id"], fields["timestamp_nanos"]
    )


class EventAttribute:
    """An attribute of a data event, which reads a column of the event's page."""

    def __init__(self, field: str, doc: str) -> None:
        self.field = field
        self.__doc__ = doc

    def __get__(self, event: DataEvent | None, owner: type | None = None) -> Any:
        return self if event is None else event._page.values(self.field)[event._row]


class DataEvent:
    """A change. Its attributes have the names and values of the fields of the SQL function `dbus_event`."""

    __slots__ = ("_page", "_row")

    if TYPE_CHECKING:
        version: int
        byte_order: str
        header_crc: int
        value_crc: int
        length: int
        attributes: int
        opcode: str | None
        is_trace: bool
        is_replicated: bool
        key_type: str | None
        is_end_of_period: bool
        sequence: int
        physical_partition_id: int
        logical_partition_id: int
        timestamp_nanos: int
        timestamp: datetime.datetime
        src_id: int
        source_range: str
        event_type: str
        schema_id: bytes | None
        schema_version: int | None
        key: str | None
        key_long: int | None
        key_bytes: bytes | None
        value: bytes | None
        value_size: int | None
        metadata: bytes | None
        metadata_schema_id: bytes | None
        metadata_schema_version: int | None
        key_schema_id: bytes | None
        key_schema_version: int | None
        status: str
        error: str | None
        is_valid: bool

    def __init__(self, page: Page, row: int) -> None:
        self._page = page
        self._row = row

    def typed(self) -> Any:
        """The payload as Python values, decoded by its schema; a record is a dict. None if it is missing or cannot be read.

        Raises
        ------
        LookupError
            if no source has the event's schema id. Pass the sources to ``consume`` or ``dispatch`` as ``sources``.
        """
        return self._page.typed(self._row)

    def __bytes__(self) -> bytes:
        """The serialized event."""
        event: bytes = self._page.events[self._row].as_py()
        return event

    def __repr__(self) -> str:
        key = self.key if self.key is not None else self.key_bytes
        return f"DataEvent(scn={self.sequence}, src_id={self.src_id}, opcode={self.opcode}, key={key!r})"


for _field in FORMAT.by_name["dbus_event"].return_type:
    setattr(DataEvent, _field.name, EventAttribute(_field.name, FORMAT.by_name[f"dbus_{_field.name}"].doc))


class UnreadableEventError(Exception):
    """The payload of a control event cannot be read. Databus stops without a message."""


_ERRORS: Final[dict[int, type[Exception]]] = {-5: ScnNotFoundError, -6: PullerRetriesExhaustedError}
_ERROR: Final = frozenset(("error", "errorId"))
_THROWABLE: Final = frozenset(("cause", "stackTrace", "message", "suppressed", "localizedMessage"))
_FRAME: Final = frozenset(("className", "methodName", "fileName", "lineNumber", "nativeMethod"))


def error_of(payload: bytes) -> Exception | None:
    """The error of an error event, with the message of its cause; None for an unknown id.

    It is as strict as Databus, which accepts no unknown fields. So it cannot read a stack frame that Java 9 or later has written.

    UnreadableEventError if the payload is not that of an error event.
    """
    try:
        body = json.loads(payload)
        throwable = body.get("error")
        if not body.keys() <= _ERROR or not _is_throwable(throwable):
            raise ValueError("fields that an error event does not have")
        kind = _ERRORS.get(int(body.get("errorId", 0)))
        if kind is None:
            return None
        return kind() if throwable is None else kind(throwable.get("message"))
    except (AttributeError, ValueError, TypeError) as problem:
        raise UnreadableEventError(f"an error event with an unreadable payload, {payload[:100]!r}") from problem


def _is_throwable(throwable: Any) -> bool:
    if throwable is None:
        return True
    frames = throwable.get("stackTrace") or []
    return (
        throwable.keys() <= _THROWABLE
        and all(frame.keys() <= _FRAME for frame in frames)
        and _is_throwable(throwable.get("cause"))
    )
