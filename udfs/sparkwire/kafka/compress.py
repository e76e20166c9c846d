"""Compress with the framing and block sizes of Kafka's own clients, the reverse of `framings`. `codecs` has the levels.

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
from collections.abc import Iterator

import cramjam

_GZIP_SYSTEM = 9  # position of the operating system in a member's header
_UNKNOWN_SYSTEM = 255

_XERIAL_HEADER = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2  # version, oldest compatible version
_SNAPPY_BLOCK = 32 << 10  # [bytes]

_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")  # magic, flags, block size, checksum of the two
_LZ4_HEADER_0 = bytes.fromhex("04224d18 60 40 1a")  # the checksum covers all six bytes
_LZ4_BLOCK = 64 << 10  # [bytes]
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)


def stored(source: memoryview, level: int, magic: int) -> bytes:
    """No compression."""
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
