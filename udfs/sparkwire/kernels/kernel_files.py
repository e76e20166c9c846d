"""Files of machine code: a digest, then the content.

The digest also covers the file's name, so a file that is copied over another one is corrupt, like a truncated one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

OFF = os.environ.get("SPARKWIRE_KERNEL_CACHE", "").lower() == "off"
"""whether the cache is off: every process compiles, without reading or writing files"""

_DIGEST_SIZE = 32  # [bytes]


def read(path: Path) -> bytes | None:
    """The content of ``path``; None if the file does not exist or is corrupt."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[_DIGEST_SIZE:]
    return content if _digest(path, content) == whole[:_DIGEST_SIZE] else None


def write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(path, content) + content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()
