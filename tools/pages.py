"""Generate the Markdown pages from the catalogue: functions, samples, formats."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from types import ModuleType

import pyarrow as pa

from sparkwire import errors
from sparkwire.base.sqltype import sql_name
from sparkwire.catalogue import FORMATS, SAMPLES
from sparkwire.changes.declarations import FORMATS as CHANGE_FORMATS
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.read_messages import position_type
from sparkwire.core.arguments import brief
from sparkwire.core.function import Format, Function, default_of
from sparkwire.core.sources.options import Option
from sparkwire.kafka.cluster.tables import TABLES
from tools.format_tables import cell, sections

WIDTH = 88  # maximum line length of a declaration [characters]
LINE = 120  # line length of a paragraph [characters]
HEX = 96  # line length of sample bytes [characters]


def overview() -> str:
    """The page with all functions, each with a line and a link."""
    parts = [
        "# Functions",
        "",
        "You find every SQL function with its result. The view `sparkwire_functions` lists them in SQL: signature, meaning",
        "and example. Spark's own `DESCRIBE FUNCTION EXTENDED` prints `N/A` for every Python function.",
        "",
        "The examples read the view `sparkwire_samples`. It has one row with [these bytes](samples.md).",
        "",
    ]
    for format in FORMATS:
        parts += [f"## [{format.title}]({format.name}.md)", "", "| function | result |", "|---|---|"]
        parts += [
            f"| [`{function.name}`]({format.name}.md#{function.name}) | {cell(first_sentence(function.doc))} |"
            for function in format.functions
        ]
        parts += [""]
    return "\n".join(parts)


def exceptions() -> str:
    """The page with all exceptions of the package, their meaning and base classes."""
    about, *_ = (inspect.getdoc(errors) or "").partition("\n\n    try:")
    example, *rest = (inspect.getdoc(errors) or "")[len(about) :].strip("\n").split("\n\n")
    parts = ["# Exceptions", "", *_paragraph(about), ""]
    parts += ["```python", textwrap.dedent(example), "```", ""]
    for paragraph in rest:
        parts += [*_paragraph(paragraph), ""]
    parts += ["| exception | also a | meaning |", "|---|---|---|"]
    for name in errors.__all__:
        error_class = getattr(errors, name)
        also = ", ".join(f"`{base.__name__}`" for base in error_class.__bases__ if base.__module__ == "builtins")
        parts.append(f"| `{name}` | {also} | {cell(error_class.__doc__)} |")
    return "\n".join([*parts, ""])


def functions(format: Format) -> str:
    """The page of a format's functions: declaration, meaning, example, and the fields of the results."""
    parts = [
        f"# {format.title}: functions",
        "",
        f"This page describes the SQL functions. For the bytes that they read, see [the format](../formats/{format.name}.md).",
        "",
    ]
    for function in format.functions:
        parts += [f"## {function.name}", "", "```text", declaration(function), "```", "", *_paragraph(function.doc), ""]
        parts += [*_arguments(format, function), ""]
        parts += [f"`{function.example_expression}` → `{function.example_result}`", ""]
        parts += _fields(function)
    return "\n".join(parts)


def _arguments(format: Format, function: Function) -> list[str]:
    rows = [
        f"| `{one.name}` | `{cell(brief(one.declared_type))}` | {'' if one.required else f'`{default_of(one)}`'} "
        f"| {cell(format.meaning(one))} |"
        for one in function.arguments
    ]
    return ["| argument | type | default | meaning |", "|---|---|---|---|", *rows]


def samples() -> str:
    """The page with the sample bytes of the examples."""
    parts = ["# Samples", "", "You find the columns of the view `sparkwire_samples`, in hexadecimal.", ""]
    for name, sample in SAMPLES.items():
        parts += [f"## {name}", "", "```text", *textwrap.wrap(sample.hex(), HEX), "```", ""]
    return "\n".join(parts)


def format_page(format: Format) -> str:
    """The page of a format: its package's docstring, with grammar and reading rules, and its tables."""
    package = f"sparkwire.{format.name}"
    doc = inspect.getdoc(importlib.import_module(package)) or ""
    about = f"This page describes the bytes. To read them, use [the functions](../functions/{format.name}.md)."
    if format.name in CHANGE_FORMATS:
        about += f'\nFor the rows of a table, use [`sparkwire.changes`](../changes.md) with `format="{format.name}"`.'
    parts = [f"# {format.title}", "", about, "", doc, ""]
    return "\n".join([*parts, *sections(package)])


_OTHER_MESSAGES = """\
| `databus` | [events](formats/databus.md) | `schemas`: the Avro schemas of the payloads |
| `debezium` | [JSON values](formats/debezium.md) | `key` and `headers`, the columns of Kafka's keys and headers; \
`columns` for a stream or for messages without a schema |
| `debezium` | Avro values | the same, and `schemas`: a [`Registry`](avro.md) of the schemas, or a mapping from ids to schemas |
""".splitlines()
"""the lines of formats that are no declarations"""
_OTHER_ORDERS = (
    "| `databus` | `scn, file, position` |",
    "| `debezium`, by source | `log, lsn, position, sub_position, row` |",
)


def change_page(page: str) -> str:
    """The page about changes, with the lines of the declarations in its tables of formats and orders."""
    lists = "".join(
        f"; of {system.title} also `row INT`, the place in the message"
        for system in SYSTEMS.values()
        if system.in_arrays
    )
    texts = "Offsets that are texts: `partition INT, digits INT, number STRING`"
    orders = [
        f"| Kafka's records, by offset | `partition INT, offset BIGINT`{lists}. {texts} |",
        *_OTHER_ORDERS,
    ]
    for system in SYSTEMS.values():
        position = position_type(system)
        if position is not None:
            remark = f"; {system.position_remark}" if system.position_remark else ""
            orders.append(f"| `{system.name}`, by source | `{', '.join(field.name for field in position)}`{remark} |")
    messages = [f"| `{system.name}` | {system.messages} | {system.also_pass} |" for system in SYSTEMS.values()]
    page = _with_lines(page, "| format | messages | also pass |", [*_OTHER_MESSAGES, *messages])
    return _with_lines(page, "| format | `_order_` after `epoch` |", orders)


def _with_lines(page: str, head: str, lines: Sequence[str]) -> str:
    """The page with other lines in the table that has this head."""
    before, _, after = page.partition(head + "\n")
    rule, _, others = after.partition("\n")
    rest = others[others.index("\n\n") :]
    return "\n".join([before + head, rule, *lines]) + rest


def source_page(
    source: ModuleType,
    types: Mapping[str, pa.DataType],
    docs: Mapping[str, str],
    on_request: Mapping[str, pa.DataType],
    written: Sequence[Option],
) -> str:
    """The tables of a data source: its options, its columns, columns on request, and the options of writing."""
    about = "This page lists the options and columns. To use the source, see [files and streams as tables](../guide/files.md)."
    parts = [f"# {source.NAME}", "", about, ""]
    parts += ["## Options for reading", "", *_options(source.OPTIONS)]
    parts += ["", "## Options for writing", "", *_options(written)]
    parts += ["", "## Columns", "", "| column | type | meaning |", "|---|---|---|"]
    parts += [f"| `{name}` | `{sql_name(type)}` | {cell(docs[name])} |" for name, type in types.items()]
    if on_request:
        parts += [
            "",
            "You get these columns only if `columns` names them:",
            "",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        parts += [f"| `{name}` | `{sql_name(type)}` | {cell(docs[name])} |" for name, type in on_request.items()]
    return "\n".join([*parts, ""])


def cluster_page() -> str:
    """The tables of a cluster, with their columns."""
    parts = ["# Tables of a cluster", ""]
    parts += [
        "This page lists the columns of the DataFrames that `sparkwire.kafka.cluster(spark, path)` returns. `DESCRIBE` shows",
        "the same comments. To use them, see [read a Kafka cluster's disks](../guide/kafka-storage.md#a-cluster-from-its-disk).",
        "",
    ]
    for name, table in TABLES.items():
        parts += [f"## {name}", "", table.doc, "", "| column | type | meaning |", "|---|---|---|"]
        parts += [f"| `{column.name}` | `{column.type}` | {cell(column.doc)} |" for column in table.columns] + [""]
    return "\n".join(parts)


def _options(options: Sequence[Option]) -> list[str]:
    rows = [f"| `{option.name}` | {_default(option.default)} | {cell(option.doc)} |" for option in options]
    return ["| option | default | meaning |", "|---|---|---|", *rows]


def _default(value: object) -> str:
    if value is None or value in ((), ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def declaration(function: Function) -> str:
    """A function's signature; long types are broken over several lines."""
    call, _, returns = function.signature.partition(" -> ")
    return f"{_broken(call)} -> {_broken(returns)}"


def _broken(text: str, indent: str = "") -> str:
    """A declaration with each part of its outermost brackets on a separate line, if it is too long for one."""
    if len(indent) + len(text) <= WIDTH or text[-1] not in ")>":
        return text
    opening = min(place for bracket in "(<" if (place := text.find(bracket)) >= 0)
    head, inner, close = text[: opening + 1], text[opening + 1 : -1], text[-1]
    parts = split(inner)
    if len(parts) == 1 and close == ">":
        return head + _broken(inner, indent) + close
    deeper = indent + "  "
    lines = ",\n".join(deeper + _broken(part, deeper) for part in parts)
    return f"{head}\n{lines}\n{indent}{close}"


def split(text: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _fields(function: Function) -> list[str]:
    if not function.field_docs:
        return []
    result = function.return_type
    struct = result.value_type if pa.types.is_list(result) else result
    lines = [
        f"| `{field.name}` | `{sql_name(field.type)}` | {cell(function.field_docs[field.name])} |" for field in struct
    ]
    return ["| field | type | meaning |", "|---|---|---|", *lines, ""]


def first_sentence(doc: str) -> str:
    """The summary of a function."""
    head, stop, rest = doc.partition(". ")
    return head + "." if stop and rest[:1].isupper() else doc


def _paragraph(doc: str) -> list[str]:
    return textwrap.wrap(cell(doc), LINE, break_long_words=False, break_on_hyphens=False)
