"""Keys of encrypted segments: the RSA keys in the file `encryptionKeys`, and the data keys that they decrypt.

    {"key1": "/secrets/key1.private.pem", "key-2": "key-2.private.pem"}      paths are absolute, or relative to the file

Each segment has a key of 32 bytes, encrypted with RSA-OAEP and the hash SHA3-512, also for the mask. `pycryptodome` decrypts it,
because the package `cryptography`, which decrypts the chunks, does not support that hash in OAEP. No message contains a key.

Source: RFC 8017, 7.1.2; Aiven-Open/tiered-storage-for-apache-kafka, `security.RsaEncryptionProvider`.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import Any, Final

from sparkwire.base.printable import printable, value_error
from sparkwire.core.sources.storage import OpenFile, file_at

_DATA_KEY: Final = 32  # [bytes]
_DATA_KEYS, _PRIVATE_KEYS = (
    1024,
    64,
)  # number of keys that a process caches, because it reads a segment's chunks one after the other
IV, TAG = 12, 16
"""sizes of the IV before and the tag after the ciphertext of each chunk [bytes]"""


class Keys:
    """The keys in a file `encryptionKeys`, read on first use. A pickled task has the path, but no key."""

    def __init__(self, path: str) -> None:
        self.path = path

    def decrypt(self, data: bytes, data_key: str, aad: bytes) -> bytes | None:
        """The decrypted content of a chunk, None if its tag does not match; ValueError if there is no key for it."""
        cipher = _cipher(self.path, data_key)
        from cryptography.exceptions import InvalidTag

        try:
            plain: bytes = cipher.decrypt(data[:IV], data[IV:], aad)
        except (InvalidTag, ValueError):  # ValueError for a truncated IV
            return None
        return plain


@lru_cache(_DATA_KEYS)
def _cipher(path: str, data_key: str) -> Any:
    try:
        from Crypto.Cipher import PKCS1_OAEP
        from Crypto.Hash import SHA3_512
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise value_error(
            f"the segments are encrypted, and {error.name} is not installed: install the extra 'tiered' of sparkwire"
        ) from error
    key_id, _, wrapped = data_key.partition(":")
    if not path:
        raise value_error(
            f"the segments are encrypted with the key {key_id}: encryptionKeys must name a JSON file of key ids and PEM files"
        )
    key = _private_key(path, key_id)
    cipher = PKCS1_OAEP.new(key, SHA3_512)  # type: ignore[arg-type]  # the stubs do not have this hash
    try:
        return AESGCM(_of_data_key(cipher.decrypt(base64.b64decode(wrapped))))
    except ValueError as error:  # from base64 or from the padding
        raise value_error(f"the key {key_id} of {path} is not the one that the segments are encrypted with") from error


def _of_data_key(plain: bytes) -> bytes:
    if len(plain) != _DATA_KEY:
        raise ValueError(f"a data key of {len(plain)} bytes")
    return plain


@lru_cache(_PRIVATE_KEYS)
def _private_key(path: str, key_id: str) -> Any:
    from Crypto.PublicKey import RSA

    content = _content(path, f"encryptionKeys names {path}")
    try:
        pems = dict(json.loads(content))
    except (ValueError, TypeError) as error:
        raise value_error(f"encryptionKeys {path} is no JSON object of key ids and PEM files") from error
    if key_id not in pems:
        raise value_error(
            f"encryptionKeys {path} has no key {key_id}, with which segments are encrypted: it has {', '.join(pems)}"
        )
    pem = str(pems[key_id])
    place = pem if pem.startswith("/") or "://" in pem else "".join((*path.rpartition("/")[:2], pem))
    failure = value_error(f"{place}, the key {key_id} of encryptionKeys, is no PEM file of an RSA private key")
    content = _content(place, f"encryptionKeys {path} names for the key {key_id} the PEM file {place}")
    try:
        key = RSA.import_key(content)
    except (ValueError, TypeError, IndexError) as error:
        raise failure from error
    if not key.has_private():
        raise failure
    return key


def _content(path: str, named: str) -> bytes:
    try:
        with OpenFile(file_at(path)) as source:
            return source.view(0, source.size).tobytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise FileNotFoundError(printable(f"{named}, which does not exist")) from error
    except PermissionError as error:
        raise PermissionError(printable(f"{named}, which you do not have permission to read")) from error
