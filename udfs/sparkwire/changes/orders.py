"""The parts of `_order_`, and which orders are comparable.

The first part is the epoch. Orders of different epochs are comparable: the greater epoch is later. Orders of one epoch are
comparable only within one partition of one topic, or one log of a database. No other part separates orders. If an order has a
log and a partition, the partition separates only orders with one position in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error

EPOCH: Final = "epoch"
PARTITION: Final = "partition"
LOG: Final = "log"
POSITION: Final = "position"
SEPARATE: Final = (PARTITION, LOG)
"""parts that separate orders of one epoch"""
SAME_POSITION: Final = "same position"
"""what separates orders that have the same position of the source, and another partition"""

NUMBER: Final = pa.struct([("digits", pa.int32()), ("number", pa.string())])
"""An integer of any length, as a STRUCT that sorts like the number."""
_DIGITS, _NUMBER = (part.name for part in NUMBER)
_STARTS: Final = ("scn", "offset", POSITION, _NUMBER)
"""the part of an order with which a number or tuple for ``until`` begins"""

_OF_EPOCH: Final = "%s are in the %s %s and %s of epoch %s, which have no common order: "
_BY_SOURCE: Final = 'or order="source" if the format has positions in the source'
WAYS_OUT: Final = {
    PARTITION: f"pass sparkwire.changes a greater epoch for the later partition, {_BY_SOURCE}",
    "topic": f"pass sparkwire.changes a greater epoch for the later topic, {_BY_SOURCE}",
    LOG: 'pass sparkwire.changes a greater epoch for the later log, or order="offset" if the topic has one partition',
    SAME_POSITION: "pass sparkwire.changes a greater epoch for the later partition",
}
"""what to do about orders that are not comparable"""


def incomparable_sentence(part: str) -> str:
    """The format of an error about two orders of one epoch that ``part`` separates: what, its two values, and the epoch."""
    separate = PARTITION if part == SAME_POSITION else part
    return _OF_EPOCH.replace("the %s", f"the {separate}s") + WAYS_OUT[part]


def difference(what: str, order: Sequence[str], places: Sequence[Mapping[str, Any]]) -> str:
    """The error about two rows whose orders are not comparable.

    ``what`` names them, and ``order`` is the sequence of an order's parts. Each place has ``at``, the order, and ``topic``.
    """
    topics = [place.get("topic") for place in places]
    orders = [place["at"] if order else {} for place in places]
    part = next((name for name in order if name in SEPARATE), "topic")
    values = [one.get(part) for one in orders]
    if None not in topics and topics[0] != topics[1]:
        part, values = "topic", topics
    elif values[0] == values[1]:
        part, values = SAME_POSITION, [one.get(PARTITION) for one in orders]
    shown = ("NULL" if value is None else value for value in (*values, orders[0].get(EPOCH)))
    return incomparable_sentence(part) % (what, *shown)


def numbers(texts: pa.Array) -> pa.Array:
    """Texts of digits as NUMBER; NULL if a text is not an integer."""
    plain = pc.if_else(pc.match_substring_regex(texts, "^[0-9]+$"), pc.utf8_ltrim(texts, "0"), None)
    digits = pc.cast(pc.utf8_length(plain), pa.int32())
    return pa.StructArray.from_arrays([digits, plain], fields=list(NUMBER), mask=pc.is_null(plain))


def named_parts(value: Any, names: Sequence[str]) -> dict[str, Any]:
    """Convert the value of ``until`` to the parts of an order, in the order's own sequence.

    Parameters
    ----------
    value
        a Row or mapping by name; a tuple or single value for the parts from ``scn``, ``offset`` or the position on
    names
        the names of the order's parts

    Raises
    ------
    ValueError
        if the value does not have such parts
    """
    has = f"an order with the parts {', '.join(names)}" if names else "a number"
    if isinstance(value, tuple) and hasattr(value, "__fields__"):  # a Row
        value = dict(zip(value.__fields__, value, strict=True))
    if isinstance(value, Mapping):
        parts = dict(value)
    else:
        first = next((at for at, name in enumerate(names) if name in _STARTS), 0)
        later = [name for name in names[first:] if name not in (EPOCH, *SEPARATE)]
        values = list(value) if isinstance(value, tuple | list) else [value]
        if len(values) > len(later):
            raise value_error(f"current() expected until to be {has}, got {value!r}")
        parts = dict(zip(later, values, strict=False))
    unknown = [name for name in parts if name not in names]
    if unknown or not parts:
        raise value_error(f"current() expected until to be {has}, got {value!r}")
    missing = [name for name in parts if parts[name] is None]
    if missing:
        raise value_error(f"current() expected a value for each part of until, got none for {missing[0]}: leave it out")
    if _NUMBER in parts and _DIGITS in names:
        digits = str(integer(parts[_NUMBER], _NUMBER)).lstrip("0")
        parts |= {_DIGITS: len(digits), _NUMBER: digits}
    return {name: parts[name] for name in names if name in parts}


def integer(value: Any, part: str) -> int:
    """An integer of ``until``; of DataHub also as digits. Raises ValueError for other values."""
    if part == _NUMBER and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    is_whole = isinstance(value, Integral) or (isinstance(value, Decimal) and value.is_finite() and value == int(value))
    if isinstance(value, bool) or not is_whole or (part == _NUMBER and value < 0):
        raise value_error(f"current() expected a whole number for {part} in until, got {value!r}")
    return int(value)
