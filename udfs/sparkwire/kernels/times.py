"""Convert timestamps to Spark's unit, dates to days, and dates and times to ISO 8601 text.

A writer returns the position after its text.
"""

from __future__ import annotations

from typing import Final

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints
from sparkwire.kernels.text import write_character, write_digits

_DAY: Final = 86_400  # [s]


@kernel
def millis_to_micros(millis: Ints, first: int, last: int, out: Ints) -> bool:
    """Convert milliseconds to microseconds. Returns whether all are between ``first`` and ``last`` [ms]."""
    inside = True
    for i in range(millis.size):
        inside &= (first <= millis[i]) & (millis[i] <= last)
        out[i] = millis[i] * 1000
    return inside


@kernel
def nanos_to_micros(nanos: Ints, out: Ints) -> None:
    """Convert nanoseconds to microseconds, rounded toward the past."""
    for i in range(nanos.size):
        out[i] = nanos[i] // 1000


@kernel
def write_date(out: Bytes, at: int, day: int) -> int:
    """Write days since the epoch as ``2020-01-31``, with Howard Hinnant's civil_from_days."""
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    at = write_digits(out, at, year + era * 400 + (1 if month >= 10 else 0), 4)
    at = write_digits(out, write_character(out, at, ord("-")), month + 3 if month < 10 else month - 9, 2)
    return write_digits(out, write_character(out, at, ord("-")), of_year - (153 * month + 2) // 5 + 1, 2)


@kernel
def day_of(year: int, month: int, day: int) -> int:
    """The days since the epoch of a valid date, with Howard Hinnant's days_from_civil."""
    year -= 1 if month <= 2 else 0
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@kernel
def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@kernel
def write_timestamp(out: Bytes, at: int, millis: int) -> int:
    """Write milliseconds since the epoch as ``2020-01-31T23:59:59.999Z``."""
    seconds, day = millis // 1000, millis // (1000 * _DAY)
    at = write_character(out, write_date(out, at, day), ord("T"))
    at = write_digits(out, at, seconds // 3600 % 24, 2)
    at = write_digits(out, write_character(out, at, ord(":")), seconds // 60 % 60, 2)
    at = write_digits(out, write_character(out, at, ord(":")), seconds % 60, 2)
    at = write_digits(out, write_character(out, at, ord(".")), millis - seconds * 1000, 3)
    return write_character(out, at, ord("Z"))
