"""The data event that a consumer gets: the fields of `dbus_event`, decoded on first use."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from sparkwire.databus.functions import FORMAT

if TYPE_CHECKING:
    from sparkwire.databus.client.page import Page


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
