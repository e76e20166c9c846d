"""Kernels: pure loops over flat arrays, compiled by Numba. No other package imports Numba."""

from __future__ import annotations

from sparkwire.kernels.checksums.crc import crc32, crc32_raw, crc32c
from sparkwire.kernels.field_access import FieldPlace, Variant, field_reader, variant_of
from sparkwire.kernels.jit import CHECKED, kernel
from sparkwire.kernels.load import (
    COPY_SLACK,
    Bools,
    Bytes,
    Ints,
    copy,
    i8,
    i16,
    i32,
    i64,
    int64,
    prefetch,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
    u8,
    u16,
    u32,
    uint64,
)

__all__ = [
    "CHECKED",
    "COPY_SLACK",
    "Bools",
    "Bytes",
    "FieldPlace",
    "Ints",
    "Variant",
    "copy",
    "crc32",
    "crc32_raw",
    "crc32c",
    "field_reader",
    "i8",
    "i16",
    "i32",
    "i64",
    "int64",
    "kernel",
    "prefetch",
    "store_i16",
    "store_i32",
    "store_i64",
    "store_u8",
    "u8",
    "u16",
    "u32",
    "uint64",
    "variant_of",
]
