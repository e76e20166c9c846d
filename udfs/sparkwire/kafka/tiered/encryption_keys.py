"""Keys of encrypted segments: the RSA keys that `encryptionKeys` names, and the data keys that they unwrap.

    {"key1": "/secrets/key1.private.pem", "key-2": "key-2.private.pem"}      paths are absolute, or relative to the file

Each segment has a key of 32 bytes, encrypted with RSA-OAEP whose hash, also of its mask, is SHA3-512. The package `cryptography`
does RSA, AES and reads PEM, but refuses that hash in OAEP: its padding is undone here. No message prints a key.

Source: RFC 8017, 7.1.2; Aiven-Open/tiered-storage-for-apache-kafka, `security.RsaEncryptionProvider`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import Any, Final

from sparkwire.core.sources.storage import OpenFile, file_at

_HASH: Final = hashlib.sha3_512
_HASH_SIZE: Final = 64  # [bytes]
_DATA_KEY: Final = 32  # [bytes]
IV, TAG = 12, 16
"""around the ciphertext of each chunk [bytes]"""


class Keys:
    """The keys of one file of `encryptionKeys`, read when the first is needed; a task takes the path along, and no key."""

    def __init__(self, path: str) -> None:
        self.path = path

    def decrypt(self, data: bytes, data_key: str, aad: bytes) -> bytes | None:
        """What a chunk encrypts, None where its tag does not match; ValueError where there is no key for it."""
        cipher = _cipher(self.path, data_key)
        from cryptography.exceptions import InvalidTag

        try:
            plain: bytes = cipher.decrypt(data[:IV], data[IV:], aad)
        except (InvalidTag, ValueError):  # the latter of an IV that is cut off
            return None
        return plain


@cache
def _cipher(path: str, data_key: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ValueError(
            'the segments are encrypted, and cryptography is not installed: pip install "sparkwire[tiered]"'
        ) from error
    key_id, _, wrapped = data_key.partition(":")
    if not path:
        raise ValueError(
            f"the segments are encrypted with the key {key_id}: encryptionKeys has to name a JSON file of key ids and PEM files"
        )
    key = _private_key(path, key_id)
    plain = _unwrapped(key.private_numbers(), key.key_size, base64.b64decode(wrapped))
    if plain is None or len(plain) != _DATA_KEY:
        raise ValueError(f"the key {key_id} of {path} is not the one that the segments are encrypted with")
    return AESGCM(plain)


@cache
def _private_key(path: str, key_id: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        names = json.loads(_content(path))
        known = dict(names)
    except (ValueError, TypeError) as error:
        raise ValueError(f"encryptionKeys {path} is no JSON object of key ids and PEM files") from error
    if key_id not in known:
        raise ValueError(
            f"encryptionKeys {path} has no key {key_id}, with which segments are encrypted: it has {', '.join(known)}"
        )
    pem = str(known[key_id])
    place = pem if pem.startswith("/") or "://" in pem else f"{path.rpartition('/')[0]}/{pem}"
    try:
        return load_pem_private_key(_content(place), password=None)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{place}, the key {key_id} of encryptionKeys, is no PEM file of an RSA private key"
        ) from error


def _content(path: str) -> bytes:
    with OpenFile(file_at(path)) as source:
        return source.view(0, source.size).tobytes()


def _unwrapped(numbers: Any, bits: int, wrapped: bytes) -> bytes | None:
    """RSAES-OAEP decryption with an empty label; None where the padding is wrong."""
    size = bits // 8
    if len(wrapped) != size:
        return None
    encoded = _to_the_private_exponent(int.from_bytes(wrapped), numbers).to_bytes(size)
    first, masked_seed, masked_block = encoded[0], encoded[1 : 1 + _HASH_SIZE], encoded[1 + _HASH_SIZE :]
    seed = _xor(masked_seed, _mask(masked_block, _HASH_SIZE))
    block = _xor(masked_block, _mask(seed, len(masked_block)))
    label, rest = block[:_HASH_SIZE], block[_HASH_SIZE:].lstrip(b"\0")
    return rest[1:] if first == 0 and label == _HASH(b"").digest() and rest[:1] == b"\1" else None


def _to_the_private_exponent(number: int, key: Any) -> int:
    """By the primes, each with half of the bits: in a third of the time."""
    of_p, of_q = pow(number, key.dmp1, key.p), pow(number, key.dmq1, key.q)
    return int(of_q + key.q * (key.iqmp * (of_p - of_q) % key.p))


def _mask(seed: bytes, size: int) -> bytes:
    """MGF1."""
    parts = (_HASH(seed + counter.to_bytes(4)).digest() for counter in range(-(-size // _HASH_SIZE)))
    return b"".join(parts)[:size]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
