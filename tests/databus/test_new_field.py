"""A field that is added to a layout is read and written. Only the tables of the layout and the functions change.

In a separate process, on a copy of the package: layouts become code when they are imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import sparkwire

pytestmark = pytest.mark.process

LAYOUT = """\
    Field("key_long", "i64", "The key, if it is a LONG"),"""
FUNCTIONS = 'FIELDS.append(fixed("version", "dbus_version(event) -> 0"))'
PROGRAM = """
import pyarrow as pa
from sparkwire import FUNCTIONS

def event(**fields):
    return FUNCTIONS["to_dbus_event"].decode(pa.array([fields]))

for order in ("BIG_ENDIAN", "LITTLE_ENDIAN"):
    written = event(colour=-7, key_long=5, value=b"hello", byte_order=order)
    assert len(written[0].as_py()) == 68, written
    read = FUNCTIONS["dbus_event"].decode(written)[0].as_py()
    assert (read["colour"], read["key_long"], read["value"], read["error"]) == (-7, 5, b"hello", None), read
    assert FUNCTIONS["dbus_colour"].decode(written).to_pylist() == [-7]
for fields in ({"colour": 2**15}, {"colour": 1, "version": 2}):
    try:
        event(**fields)
    except ValueError as error:
        print(error)
"""


def test_an_additional_field(tmp_path: Path) -> None:
    package = tmp_path / "sparkwire"
    shutil.copytree(Path(sparkwire.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    insert(package / "databus/layout.py", LAYOUT, '    Field("colour", "i16", "Colour of the event"),\n' + LAYOUT)
    row = FUNCTIONS + '\nFIELDS.append(fixed("colour", "dbus_colour(event) -> 0"))'
    insert(package / "databus/event_fields.py", FUNCTIONS, row)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "to_dbus_event() expected colour from -32768 to 32767 in V1, got 32768",
        "to_dbus_event() expected no colour in V2, got 1",
    ]


def test_a_field_without_a_function_is_an_error() -> None:
    with pytest.raises(TypeError, match="got colour"):
        sparkwire.FUNCTIONS["to_dbus_event"].decode(pa.array([{"colour": 1}]))


def insert(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
