"""Error codes for bytes that cannot be read: one list for every format.

Kernels write the codes as small integers; analysts read them as words: ``ERRORS[code]``. For valid bytes, the code is ``OK``,
which the functions return as NULL.
"""

from __future__ import annotations

from sparkwire.base.printable import value_error

ERRORS = (
    "TRUNCATED",
    "BAD_MAGIC",
    "BAD_LENGTH",
    "HEADER_CRC_MISMATCH",
    "VALUE_CRC_MISMATCH",
    "CRC_MISMATCH",
    "UNKNOWN_CODEC",
    "DECOMPRESS_FAILED",
    "TOO_LARGE",
    "BAD_RECORD",
    "BAD_JSON",
    "MISSING_FIELD",
    "BAD_FIELD",
    "UNKNOWN_OPCODE",
    "WRONG_FORMAT",
)

OK = -1
(
    TRUNCATED,
    BAD_MAGIC,
    BAD_LENGTH,
    HEADER_CRC_MISMATCH,
    VALUE_CRC_MISMATCH,
    CRC_MISMATCH,
    UNKNOWN_CODEC,
    DECOMPRESS_FAILED,
    TOO_LARGE,
    BAD_RECORD,
    BAD_JSON,
    MISSING_FIELD,
    BAD_FIELD,
    UNKNOWN_OPCODE,
    WRONG_FORMAT,
) = range(len(ERRORS))


def argument_error(function: str, takes: str, got: object) -> ValueError:
    """The error for an invalid argument of a function."""
    return value_error(f"{function}() expected {takes}, got {got}")
