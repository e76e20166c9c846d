"""Numbers and times in texts, against Python's own readers."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.json.numbers import decimals_of
from sparkwire.json.plain_texts import dates, integers, local_times

ODD = [
    "",
    "-",
    "+",
    "+1",
    "-0",
    "00",
    "007",
    " 1",
    "1 ",
    "1.",
    ".5",
    "-.5",
    "1..2",
    "1.2.3",
    "1e3",
    "x",
    "12x",
    "\u0661",
    "0x1",
    "1_0",
]
BOUNDS = [str(sign * 2**bits + more) for bits in (7, 8, 15, 31, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)]


def both_ways(read: Any, texts: Sequence[str | None]) -> list[Any]:
    """The values; a NULL before them and a slice do not change them."""
    values: list[Any] = read(pa.array(texts, pa.string())).to_pylist()
    assert read(pa.array(["9", None, *texts], pa.string())[2:]).to_pylist() == values
    return values


def test_integers() -> None:
    texts = [*ODD, *BOUNDS, "0", "5", "-5", "9" * 19, "9" * 20, "1" * 40]
    for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        bits = type.bit_width - 1
        known = [text for text in texts if text.lstrip("-").isascii() and text.lstrip("-").isdigit()]
        expected = {text: int(text) for text in known if str(int(text)) == text and -(2**bits) <= int(text) < 2**bits}
        assert both_ways(partial(integers, type=type), texts) == [*map(expected.get, texts)]
        assert integers(pa.array([None, "1"], pa.string()), type).to_pylist() == [None, 1]


def decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """The decimal, if it fits exactly."""
    try:
        exact = Context(prec=precision, traps=[Inexact, InvalidOperation])
        number = Decimal(text)
        return number.quantize(Decimal(1).scaleb(-scale), context=exact) if number else Decimal(0)
    except (Inexact, InvalidOperation):
        return None


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (5, 2), (12, 2), (18, 0), (18, 18), (19, 0), (20, 0), (38, 10), (38, 38)]
)
def test_decimals(precision: int, scale: int) -> None:
    made = random.Random(precision * 100 + scale)
    texts = [
        "0",
        "-0",
        "0.0",
        "1.50",
        "-12.345",
        "99999",
        "0.000000000000000001",
        "1e3",
        "-4.9E-3",
        "9" * 18,
        "9" * 19,
        *BOUNDS,
    ]
    texts += ["1e-77", "1e-99999999", "0e999999999", "0e-999999999", "5e2000000", "1e5", "1e37", "1e38", "1E+2", "1e-2"]
    texts += [
        "1" * 38,
        "1" * 39,
        "1" * 77,
        "1" * 5000,
        "0." + "1" * 38,
        "0." + "1" * 5000,
        "0" * 50 + "7",
        "0.5" + "0" * 50,
    ]
    for _ in range(500):
        digits = "".join(made.choices("0123456789", k=made.randint(1, 24)))
        point = made.randint(1, len(digits))
        texts.append(made.choice(["", "-"]) + digits[:point] + ("." + digits[point:] if point < len(digits) else ""))
    expected = [decimal(text, precision, scale) for text in texts]
    assert sum(value is not None for value in expected) > 5
    assert both_ways(lambda column: decimals_of(column, pa.decimal128(precision, scale)), texts) == expected
    alone = [decimals_of(pa.array([text]), pa.decimal128(precision, scale))[0].as_py() for text in texts]
    assert alone == expected  # what other rows of the batch have does not matter


def test_texts_that_are_no_decimals() -> None:
    texts = [
        "",
        "-",
        ".",
        "1..2",
        "1.2.3",
        "x",
        "12x",
        " 1",
        "1 ",
        "1\n",
        "NaN",
        "Infinity",
        "1,5",
        "1_0",
        "\u0661",
        "0x1",
        None,
    ]
    assert both_ways(lambda column: decimals_of(column, pa.decimal128(12, 2)), texts) == [None] * len(texts)


DAYS = [
    *(
        "0001-01-01",
        "1582-10-04",
        "1582-10-15",
        "1900-02-28",
        "1969-12-31",
        "1970-01-01",
        "2000-02-29",
        "2024-12-31",
        "9999-12-31",
    ),
    *("1900-02-29", "2023-02-29", "2024-04-31", "0000-00-00", "0000-01-01", "2024-00-10", "2024-10-00", "2024-13-01"),
    *("2024-1-01", "2024/01/01", "2024-01-011", "x024-01-01", "2024-0x-01", "2024-01-0", ""),
]


def day(text: str) -> datetime.date | None:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date() if len(text) == len("yyyy-MM-dd") else None
    except ValueError:
        return None


def test_dates() -> None:
    every = [str(datetime.date.fromordinal(1) + datetime.timedelta(k)) for k in range(0, 3_652_059, 997)]
    assert both_ways(dates, [*DAYS, *every, None]) == [*map(day, [*DAYS, *every]), None]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        (" 00:00:00", datetime.time()),
        ("T23:59:59", datetime.time(23, 59, 59)),
        (" 01:02:03.5", datetime.time(1, 2, 3, 500_000)),
        (" 01:02:03.000001", datetime.time(1, 2, 3, 1)),
        (" 01:02:03.123456000", datetime.time(1, 2, 3, 123_456)),
        *(
            (clock, None)
            for clock in ("", " ", " 24:00:00", " 00:60:00", " 00:00:60", " 1:02:03", " 01:02", " 01:02:03.")
        ),
        *(
            (clock, None)
            for clock in ("x01:02:03", " 01:02:03.1234560000", " 01:02:03.1234567", " 01:02:03.x", " 01:02:03Z")
        ),
        *((clock, None) for clock in (" 01-02:03", " 01:02-03", " -1:02:03")),
    ],
)
def test_local_times(clock: str, expected: datetime.time | None) -> None:
    texts = [text + clock for text in DAYS if len(text) == len("yyyy-MM-dd")]
    days = [day(text[:10]) for text in texts]
    times = [None if day is None or expected is None else datetime.datetime.combine(day, expected) for day in days]
    assert both_ways(local_times, texts) == times
