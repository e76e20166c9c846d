"""The table of Kafka's codecs, for readers, writers, pictures and the documentation.

An entry whose codec has no decoder, or is not a codec of the entry's magic, is UNKNOWN_CODEC. A codec without an encoder cannot
be written.

The encoders use the framing and block sizes of Kafka's own clients, the reverse of `framings`:

- gzip: one member without a time and with an unknown operating system
- snappy: xerial framing of version 1, blocks of 32 KiB
- lz4: one frame of independent blocks of 64 KiB, without content size and checksums; it stores a block that does not shrink.
  For magic 0, the header's checksum also covers the frame's magic, which is wrong, but readers of magic 0 expect it
  (KAFKA-3160)
- zstd: one frame without content size and checksum

For gzip and lz4, the bytes are the same as from Kafka's Java client, if the libraries compress in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import cramjam

from sparkwire.kafka import framings
from sparkwire.kafka.layout import CODEC_MASK

_GZIP_SYSTEM = 9  # position of the operating system in a member's header
_UNKNOWN_SYSTEM = 255

_XERIAL_HEADER = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2  # version, oldest compatible version
_SNAPPY_BLOCK = 32 << 10  # [bytes]

_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")  # magic, flags, block size, checksum of the two
_LZ4_HEADER_0 = bytes.fromhex("04224d18 60 40 1a")  # the checksum covers all six bytes
_LZ4_BLOCK = 64 << 10  # [bytes]
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)

Plan = Callable[..., int]
"""a kernel of `framings` that finds the blocks of a payload"""
Decoder = Callable[[memoryview, memoryview], int]
"""decompresses a block into memory and returns its decompressed size [bytes]; raises cramjam.DecompressionError"""
Encoder = Callable[[memoryview, int, int], bytes]
"""compresses records, with a level and a magic, to a payload"""


class Codec(NamedTuple):
    """A codec, with its functions and properties."""

    id: int
    """value of the three low bits of an entry's attributes"""
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
    """whether a block states its decompressed size"""
    is_stream: bool = False
    """whether the decompressed size of a block has no bound, so that its room is a guess"""


def stored_block(source: memoryview, out: memoryview) -> int:
    """Copy a block that is not compressed."""
    out[: len(source)] = source
    return len(source)


def lz4_block(source: memoryview, out: memoryview) -> int:
    """Decompress an LZ4 block that has no size field.

    The library treats a block's first four bytes as its size if they are a possible size. So this function puts a size before
    such a block: the room, a multiple of 256. If the block is corrupt, the library reads size and block as one block. That begins
    with a match before the first byte, so the library rejects it, too.
    """
    if len(source) < 4 or 0 <= int.from_bytes(source[:4], "little", signed=True) <= len(out):
        return int(cramjam.lz4.decompress_block_into(len(out).to_bytes(4, "little") + bytes(source), out))
    return int(cramjam.lz4.decompress_block_into(source, out, output_len=len(out)))


def encode_stored(source: memoryview, level: int, magic: int) -> bytes:
    """No compression."""
    return bytes(source)


def encode_gzip(source: memoryview, level: int, magic: int) -> bytes:
    """One member."""
    member = bytearray(zlib.compress(source, level, zlib.MAX_WBITS | 16))
    member[_GZIP_SYSTEM] = _UNKNOWN_SYSTEM
    return bytes(member)


def encode_snappy(source: memoryview, level: int, magic: int) -> bytes:
    """Xerial framing."""
    return b"".join(_xerial(source))


def encode_lz4(source: memoryview, level: int, magic: int) -> bytes:
    """One frame."""
    return b"".join(_lz4(source, _LZ4_HEADER if magic else _LZ4_HEADER_0))


def encode_zstd(source: memoryview, level: int, magic: int) -> bytes:
    """One frame."""
    # In a single call, the library would know the content size and write it.
    encoder = cramjam.zstd.Compressor(level)
    encoder.compress(bytes(source))
    return bytes(encoder.finish())


def _xerial(source: memoryview) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for start in range(0, len(source), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(source[start : start + _SNAPPY_BLOCK]))
        yield len(block).to_bytes(4, "big")
        yield block


def _lz4(source: memoryview, header: bytes) -> Iterator[bytes]:
    yield header
    for start in range(0, len(source), _LZ4_BLOCK):
        plain = source[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            yield len(block).to_bytes(4, "little")
            yield block
        else:
            yield (len(plain) | _LZ4_STORED).to_bytes(4, "little")
            yield bytes(plain)
    yield _LZ4_END


CODECS: Final = (
    Codec(0, "none", (0, 1, 2), None, stored_block, encode_stored, says_size=True),
    Codec(1, "gzip", (0, 1, 2), framings.plan_gzip, cramjam.gzip.decompress_into, encode_gzip, level=6, is_stream=True),
    Codec(
        2,
        "snappy",
        (0, 1, 2),
        framings.plan_snappy,
        cramjam.snappy.decompress_raw_into,
        encode_snappy,
        says_size=True,
    ),
    Codec(3, "lz4", (0, 1, 2), framings.plan_lz4, lz4_block, encode_lz4),
    Codec(4, "zstd", (2,), framings.plan_zstd, cramjam.zstd.decompress_into, encode_zstd, level=3, is_stream=True),
)

BY_ID: Final = {codec.id: codec for codec in CODECS}
BY_NAME: Final = {codec.name: codec for codec in CODECS}
NAMES: Final = tuple(BY_ID[id].name if id in BY_ID else f"codec {id}" for id in range(CODEC_MASK + 1))
"""names by id"""


def readable(magic: int) -> tuple[Codec, ...]:
    """The codecs that the package can decompress in a magic."""
    return tuple(codec for codec in CODECS if codec.decoder is not None and magic in codec.magics)


def writable(magic: int = 2) -> tuple[str, ...]:
    """The names of the codecs that the package can write in a magic."""
    return tuple(codec.name for codec in CODECS if codec.encoder is not None and magic in codec.magics)


def listed(names: tuple[str, ...]) -> str:
    """Names as an English list: a, b or c."""
    return ", ".join(names[:-1]) + f" or {names[-1]}"


READ_NAMES: Final = tuple(codec.name for codec in readable(2))
"""names of the codecs of batches"""
READABLE: Final = tuple(sum(1 << codec.id for codec in readable(magic)) for magic in (0, 1, 2))
"""by magic, a bit for each codec that the package can decompress"""


def compressed(codec: int, source: memoryview, magic: int) -> bytes:
    """The payload of a wrapper or batch of ``magic`` with the records ``source``."""
    row = BY_ID[codec]
    assert row.encoder is not None
    return row.encoder(source, row.level, magic)
