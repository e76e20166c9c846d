"""Compression as Kafka's own clients do it, the reverse of `framings`: the same framing and block sizes. Levels are in `codecs`.

- gzip: one member without a time, its operating system unknown
- snappy: xerial framing of version 1, blocks of 32 KiB
- lz4: one frame of independent blocks of 64 KiB, without content size and checksums; it stores a block that does not shrink.
  For magic 0 the header's checksum covers the frame's magic, too: wrong, but what its readers expect
  (KAFKA-3160)
- zstd: one frame without content size and checksum

Of gzip and lz4 the bytes are those of Kafka's Java client, as long as the libraries compress alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import cramjam

_GZIP_SYSTEM = 9  # where a member's header names the operating system
_UNKNOWN_SYSTEM = 255

_XERIAL_HEADER = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2  # version, oldest compatible version
_SNAPPY_BLOCK = 32 << 10  # [bytes]

_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")  # magic, flags, block size, checksum of the two
_LZ4_HEADER_0 = bytes.fromhex("04224d18 60 40 1a")  # the checksum is that of all six
_LZ4_BLOCK = 64 << 10  # [bytes]
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)


def stored(source: memoryview, level: int, magic: int) -> bytes:
    """As it is."""
    return bytes(source)


def gzip(source: memoryview, level: int, magic: int) -> bytes:
    """One member."""
    member = bytearray(zlib.compress(source, level, zlib.MAX_WBITS | 16))
    member[_GZIP_SYSTEM] = _UNKNOWN_SYSTEM
    return bytes(member)


def snappy(source: memoryview, level: int, magic: int) -> bytes:
    """Xerial framing."""
    return b"".join(_xerial(source))


def lz4(source: memoryview, level: int, magic: int) -> bytes:
    """One frame."""
    return b"".join(_lz4(source, _LZ4_HEADER if magic else _LZ4_HEADER_0))


def zstd(source: memoryview, level: int, magic: int) -> bytes:
    """One frame."""
    # In one call the library would know the size, and write it.
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
