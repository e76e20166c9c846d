"""Protobuf schemas of a registry: the descriptors of a schema, and the message type of each payload.

    payload   count  index …  message    zigzag varints: the path to the message's type in its file; a count of 0 means path 0

Source: Confluent's "Wire format", Protobuf; ``google/protobuf/descriptor.proto``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.avro.schema_source import Registered
from sparkwire.base.printable import value_error
from sparkwire.core.column import gather, spans_of
from sparkwire.errors import needing_the_extra
from sparkwire.kernels.varint import varint

_FILE: Final = "registered.proto"
_MAX_DEPTH: Final = 64
"""maximum number of nested types"""


class ProtoFile(NamedTuple):
    """A compiled Protobuf schema."""

    descriptors: bytes
    """a ``FileDescriptorSet`` with the file and all its imports"""
    names: Mapping[str, str]
    """the full name of each message by its path; a path is a text such as ``0.2``"""


def compiled(schema: Registered) -> ProtoFile:
    """Compile a schema with ``protoc``. This needs the extra ``registry``.

    Raises ModuleNotFoundError without the extra. Raises ValueError, which names the schema, if the text is not Protobuf or if an
    import is missing from its references.
    """
    with needing_the_extra("a schema of type PROTOBUF"):
        import grpc_tools
        from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory() as folder:
        for name, text in (*schema.references, (_FILE, schema.text)):
            path = Path(folder, name).resolve()
            if not path.is_relative_to(Path(folder).resolve()):
                raise value_error(f"{schema.title} refers to {name}, which is not the path of an import")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        bundled = Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["-I.", f"-I{bundled}", "--include_imports", "--descriptor_set_out=set", _FILE]
        run = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            errors = [line for line in run.stderr.splitlines() if ".proto:" in line and "warning" not in line.lower()]
            raise value_error(f"{schema.title} is not Protobuf: {errors[0] if errors else run.stderr.strip()}")
        descriptors = Path(folder, "set").read_bytes()
    file = FileDescriptorSet.FromString(descriptors).file[-1]
    return ProtoFile(descriptors, dict(_named(file.message_type, "", file.package)))


def _named(messages: Any, path: str, package: str) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages):
        here, name = f"{path}{number}", f"{package}.{message.name}".lstrip(".")
        yield here, name
        yield from _named(message.nested_type, f"{here}.", name)


def without_paths(payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The path and the message of each payload; both are NULL if the path is invalid."""
    data, starts, sizes = spans_of(payloads)
    first = (sizes > 0) & (data[np.minimum(starts, data.size - 1)] == 0)
    paths: list[str | None] = ["0" if is_first else None for is_first in first.tolist()]
    ends = starts + 1
    for row in np.flatnonzero((sizes > 0) & ~first).tolist():
        path, end = _path(data, int(starts[row]), int(starts[row] + sizes[row]))
        paths[row], ends[row] = path, end
    names = pa.array(paths, pa.string())
    is_valid = np.asarray(names.is_valid())
    return names, gather(data, ends, np.where(is_valid, starts + sizes - ends, -1), pa.binary())


def _path(data: Any, position: int, end: int) -> tuple[str | None, int]:
    count, position = varint(data, position, end)
    numbers: list[int] = []
    while 0 < count <= _MAX_DEPTH and position >= 0 and len(numbers) < count:
        number, position = varint(data, position, end)
        numbers.append(number)
    whole = position >= 0 and len(numbers) == count
    return (".".join(map(str, numbers)), position) if whole else (None, 0)
