"""Kafka's codecs, a row each: readers, writers, pictures and pages of compressed records use this table.

A codec that has no decoder, or is none of an entry's magic, is UNKNOWN_CODEC; one without an encoder is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import cramjam

from sparkwire.kafka import compress, framings
from sparkwire.kafka.layout import CODEC_MASK

Plan = Callable[..., int]
"""a kernel of `framings`: which blocks a payload has"""
Decoder = Callable[[memoryview, memoryview], int]
"""decompress a block into memory: how many bytes it has become; raises cramjam.DecompressionError"""
Encoder = Callable[[memoryview, int, int], bytes]
"""a payload out of records, a level and a magic"""


class Codec(NamedTuple):
    """What there is to know of a codec."""

    id: int
    """the three low bits of an entry's attributes"""
    name: str
    magics: tuple[int, ...]
    """magics whose entries may use it"""
    plan: Plan | None
    decoder: Decoder | None
    """None for a codec without a decoder"""
    encoder: Encoder | None
    level: int = 0
    """the compression level; 0 for a codec without levels"""
    says_size: bool = False
    """whether a block states what it becomes"""
    is_stream: bool = False
    """whether a block may become anything: its room is a guess"""


def stored_block(source: memoryview, out: memoryview) -> int:
    """What is not compressed."""
    out[: len(source)] = source
    return len(source)


def lz4_block(source: memoryview, out: memoryview) -> int:
    """A block without its size.

    The library takes a block's first four bytes for its size where they can be one, so such a block gets its size first: the
    room, a multiple of 256. If the block is corrupt, the library reads size and block as one block. That begins with a match
    before the first byte, so the library rejects it, too.
    """
    if len(source) < 4 or 0 <= int.from_bytes(source[:4], "little", signed=True) <= len(out):
        return int(cramjam.lz4.decompress_block_into(len(out).to_bytes(4, "little") + bytes(source), out))
    return int(cramjam.lz4.decompress_block_into(source, out, output_len=len(out)))


CODECS: Final = (
    Codec(0, "none", (0, 1, 2), None, stored_block, compress.stored, says_size=True),
    Codec(
        1, "gzip", (0, 1, 2), framings.plan_gzip, cramjam.gzip.decompress_into, compress.gzip, level=6, is_stream=True
    ),
    Codec(
        2,
        "snappy",
        (0, 1, 2),
        framings.plan_snappy,
        cramjam.snappy.decompress_raw_into,
        compress.snappy,
        says_size=True,
    ),
    Codec(3, "lz4", (0, 1, 2), framings.plan_lz4, lz4_block, compress.lz4),
    Codec(4, "zstd", (2,), framings.plan_zstd, cramjam.zstd.decompress_into, compress.zstd, level=3, is_stream=True),
)

BY_ID: Final = {codec.id: codec for codec in CODECS}
BY_NAME: Final = {codec.name: codec for codec in CODECS}
NAMES: Final = tuple(BY_ID[id].name if id in BY_ID else f"codec {id}" for id in range(CODEC_MASK + 1))
"""by id"""


def readable(magic: int) -> tuple[Codec, ...]:
    """The codecs of a magic decompressed here."""
    return tuple(codec for codec in CODECS if codec.decoder is not None and magic in codec.magics)


def writable(magic: int = 2) -> tuple[str, ...]:
    """The names of a magic's codecs written here."""
    return tuple(codec.name for codec in CODECS if codec.encoder is not None and magic in codec.magics)


def listed(names: tuple[str, ...]) -> str:
    """Names as a sentence has them."""
    return ", ".join(names[:-1]) + f" or {names[-1]}"


READ_NAMES: Final = tuple(codec.name for codec in readable(2))
"""of batches"""
READABLE: Final = tuple(sum(1 << codec.id for codec in readable(magic)) for magic in (0, 1, 2))
"""By magic: a bit for each codec decompressed here."""


def compressed(codec: int, source: memoryview, magic: int) -> bytes:
    """What a wrapper or a batch of ``magic`` holds for ``source``."""
    row = BY_ID[codec]
    assert row.encoder is not None
    return row.encoder(source, row.level, magic)
