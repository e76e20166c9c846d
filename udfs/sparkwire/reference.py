"""What is generated from the catalogue: the function reference and the stub of the column functions.

``python -m sparkwire.reference`` writes both; a test holds them against the catalogue.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pyarrow as pa

from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.function import Argument, Function

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "functions.md"
STUB = Path(__file__).parent / "sql_functions.pyi"

_PYTHON_TYPES = {pa.bool_(): "bool", pa.string(): "str", pa.int64(): "int", pa.int32(): "int"}


def reference() -> str:
    """The function reference, in Markdown."""
    parts = [
        "# Functions",
        "",
        "Generated from the catalogue by `make docs`. `SELECT * FROM sparkwire_functions` says the same in SQL.",
        "Examples read the view `sparkwire_samples`, whose one row holds the bytes at the end of this page.",
        "",
    ]
    for prefix, functions in groupby(FUNCTIONS.values(), _format):
        parts += [f"## {prefix}", "", "| function | returns | meaning | example |", "|---|---|---|---|"]
        parts += [_line(function) for function in functions]
        parts += [""]
    parts += ["## Samples", "", "| column | bytes |", "|---|---|"]
    parts += [f"| `{name}` | `X'{sample.hex()}'` |" for name, sample in SAMPLES.items()]
    return "\n".join(parts) + "\n"


def stub() -> str:
    """The column functions' declarations, as a Python stub."""
    parts = ["# Generated from the catalogue by `make docs`.", "from pyspark.sql import Column", ""]
    for function in FUNCTIONS.values():
        arguments = ", ".join(_parameter(argument) for argument in function.arguments)
        parts += [
            f"def {function.name}({arguments}) -> Column:",
            f'    """{function.doc}',
            "",
            f"    {_short(function)}",
        ]
        parts += ['    """', ""]
    return "\n".join(parts)


def main() -> None:
    """Write both files."""
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(reference(), encoding="utf-8")
    STUB.write_text(stub(), encoding="utf-8")


def _format(function: Function) -> str:
    words = function.name.removeprefix("to_").split("_")
    return {"dbus": "Databus", "kafka": "Kafka", "datahub": "DataHub"}[words[0]]


def _line(function: Function) -> str:
    call, _, returns = function.signature.partition(" -> ")
    cells = [
        f"`{call}`",
        f"`{returns}`",
        function.doc,
        f"`{function.example_expression}` → `{function.example_answer}`",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _short(function: Function) -> str:
    return function.signature if len(function.signature) < 100 else function.signature.partition("<")[0] + "<…>"


def _parameter(argument: Argument) -> str:
    if not argument.constant:
        return f"{argument.name}: Column | str" + ("" if argument.required else " | None = None")
    kind = _PYTHON_TYPES[argument.type]
    default = repr(argument.default)
    return f"{argument.name}: {kind if argument.default is not None else kind + ' | None'} = {default}"


if __name__ == "__main__":
    main()
