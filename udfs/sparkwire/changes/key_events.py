"""What identifies a change of a key: the text in `_event_`, in the DELETE of the old key and in the new row.

The text has a position in the source and both keys. A position makes it *unique*: all messages with this text are one change,
which a connector that restarts sends again. Without a position, they may be several changes of the same keys. Then the n-th
DELETE belongs to the n-th new row.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_LINE = "\n"


def event_texts(positions: pa.Array, old_keys: pa.Array, new_keys: pa.Array) -> pa.Array:
    """The texts of events; NULL where a key is NULL. All arguments are STRING arrays. A position may be NULL."""
    return pc.binary_join_element_wise(positions.fill_null(""), old_keys, new_keys, _LINE)


def is_unique(event: str) -> bool:
    """Whether messages with this event are always the same change.

    Examples
    --------
    >>> is_unique("4711\\n1\\n2"), is_unique("\\n1\\n2")
    (True, False)
    """
    return not event.startswith(_LINE)


def is_unique_sql(event: str) -> str:
    """The same as SQL; NULL for NULL."""
    return f"NOT startswith({event}, chr(10))"


def event_sql(position: str, keys: str) -> str:
    """The text of an event as SQL. The position may be NULL, the keys may not."""
    return f"concat(coalesce({position}, ''), chr(10), {keys})"
