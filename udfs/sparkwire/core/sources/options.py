"""Parse the users' options. An invalid option raises an error that lists the allowed values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sparkwire.base.printable import value_error

Parse = Callable[[str], Any]

_SIZE = re.compile(r"^(\d+)\s*([kmgt]?)i?b?$", re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


Comparison = tuple[str, str, Any]
"""a column, an operator (= < <= > >= in), and a value"""


class Option(NamedTuple):
    """One option of a source."""

    name: str
    parse: Parse
    """parses the text; raises ValueError with the accepted values"""
    default: Any
    doc: str


def parsed(source: str, table: Sequence[Option], texts: Mapping[str, str]) -> dict[str, Any]:
    """The value of every option of a source, by name. Raises ValueError if an option is unknown or its value is invalid."""
    by_name = {option.name.lower(): option for option in table}
    values = {option.name: option.default for option in table}
    for name, text in texts.items():
        option = by_name.get(name.lower())
        if option is None:
            names = ", ".join(option.name for option in table)
            raise value_error(f"{source} has no option {name}: it takes {names}")
        try:
            values[option.name] = option.parse(text)
        except ValueError as error:
            raise value_error(f"{source} takes {option.name} {error}, got {text!r}") from None
    return values


def text(value: str) -> str:
    return value


def content(value: str) -> bytes:
    """Bytes: a text in UTF-8, or ``0x`` and hexadecimal digits."""
    try:
        return bytes.fromhex(value[2:]) if value[:2] in ("0x", "0X") else value.encode()
    except ValueError:
        raise ValueError("text, or bytes as 0x and pairs of hexadecimal digits") from None


def one_path(value: str) -> tuple[str, ...]:
    return (value,)


def some_paths(value: str) -> tuple[str, ...]:
    """Paths as a JSON array, which is how Spark passes the paths of `load`."""
    try:
        paths = json.loads(value)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError('a JSON array of paths (["/a", "/b"])')
    return tuple(paths)


def boolean(value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.strip().lower() == "true"


def choice(*allowed: str) -> Parse:
    """A parser for one of the allowed words, in upper or lower case."""
    by_word = {word.lower(): word for word in allowed}

    def parse(value: str) -> str:
        choice = by_word.get(value.strip().lower())
        if choice is None:
            raise value_error(" or ".join(allowed))
        return choice

    return parse


def size(value: str) -> int:
    """A size [bytes]: a number of at least 1, optionally with k, m, g or t."""
    match = _SIZE.match(value.strip())
    number = int(match.group(1)) << _POWERS[match.group(2).lower()] if match else 0
    if not 0 < number < 2**63:
        raise ValueError("a size of 1 byte or more (134217728, 128m, 1g)")
    return number


def whole_number(value: str) -> int:
    try:
        number = int(value.strip())
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise ValueError("a whole number from 0 on")
    return number


def instant(value: str) -> int:
    """A time [ms since epoch], from milliseconds or ISO text with a time zone. Rounded up, so that nothing older is included."""
    text = value.strip()
    if re.match(r"^-?\d+$", text) and abs(int(text)) < 2**63:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("ISO text (2024-05-01T12:00:00Z) or milliseconds since 1970") from None
    if moment.tzinfo is None:
        raise value_error(f"with a time zone ({moment.isoformat()}Z)")
    return -((datetime(1970, 1, 1, tzinfo=UTC) - moment) // timedelta(milliseconds=1))


def integers(value: str) -> frozenset[int]:
    """A comma-separated list of integers."""
    try:
        return frozenset(int(part) for part in value.split(","))
    except ValueError:
        raise ValueError("whole numbers with commas between them (40, 41)") from None


def chosen_columns(source: str, names: Sequence[str], value: str) -> tuple[str, ...]:
    """The columns of a comma-separated list. Raises ValueError if it is empty, or a column is unknown or repeated."""
    wanted = tuple(part.strip() for part in value.split(","))
    by_name = {name.lower(): name for name in names}
    for name in wanted:
        if name.lower() not in by_name:
            raise value_error(f"{source} has no column {name!r}: it has {', '.join(names)}")
    columns = tuple(by_name[name.lower()] for name in wanted)
    if len(set(columns)) < len(columns):
        raise value_error(f"{source} takes each of columns once, got {value!r}")
    return columns


def not_null(comparisons: Sequence[Comparison]) -> Iterator[tuple[Any, ...]]:
    """Each comparison's column, operator and values without NULLs. A row must match at least one of the values."""
    for column, operator, value in comparisons:
        values = value if operator == "in" else (value,)
        yield column, operator, *(each for each in values if each is not None)


def within(allowed: frozenset[Any] | None, values: Sequence[Any]) -> frozenset[Any]:
    """The ``values`` that are in ``allowed``; None keeps all."""
    return frozenset(values) if allowed is None else allowed.intersection(values)


def bounds_of(operator: str, *values: int) -> tuple[int, int]:
    """The range of integers for which a comparison may be true: from the first, to before the second."""
    first, end = -(2**63), 2**63
    least, most = min(values, default=end), max(values, default=first - 1)
    match operator:
        case "=" | "in":
            return least, most + 1
        case "<" | "<=":
            return first, most + (operator == "<=")
        case ">" | ">=":
            return least + (operator == ">"), end
    return first, end


def floor_millis(moment: datetime | int) -> int:
    """A time [ms since epoch], rounded toward the past."""
    if isinstance(moment, int):
        return moment
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
