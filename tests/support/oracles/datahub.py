"""A slow oracle for the DataHub functions: a JSON reader that reads one character at a time, and plain Python.

It shares no code with the package. `test_oracle.py` compares its reader with the standard library's `json`.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from typing import Any, NamedTuple

ERRORS_NEED_IMAGE = {
    "INSERT": "after",
    "UPDATE": "after",
    "UPDATE_AFTER": "after",
    "UPDATE_BEFOR": "before",
    "UPDATE_BEFORE": "before",
    "DELETE": "before",
}
CANONICAL = {
    "INSERT": "INSERT",
    "UPDATE": "UPDATE_AFTER",
    "UPDATE_AFTER": "UPDATE_AFTER",
    "UPDATE_BEFOR": "UPDATE_BEFORE",
    "UPDATE_BEFORE": "UPDATE_BEFORE",
    "DELETE": "DELETE",
    **dict.fromkeys(["TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"], "TRANSACTION"),
    **dict.fromkeys(["CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"], "DDL"),
    "MHEARTBEAT": "HEARTBEAT",
}
LETTERS = {"INSERT": "I", "UPDATE_BEFORE": "U", "UPDATE_AFTER": "U", "DELETE": "D"}

# A token without a comma, bracket or white space after it is truncated.
TOKEN = re.compile(r"(true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?=[,\]} \t\r\n])")
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?")
SURROGATE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)")
HALF = re.compile(r"\\u[dD][89a-fA-F]..")
EPOCH = datetime.datetime(1970, 1, 1)


# ---------------------------------------------------------------- JSON text, possibly truncated


class Value(NamedTuple):
    """A JSON value: ``kind`` is string, number, true, false, null, object or array."""

    kind: str
    source: str
    start: int
    end: int | None
    """None for a container without an end"""
    content: Any = None
    """str, dict or list of Values; None for other kinds"""

    @property
    def text(self) -> str | None:
        """The value as written."""
        return None if self.end is None else self.source[self.start : self.end]


class Damage(Exception):
    pass


def read(blob: bytes) -> tuple[Value, bool]:
    """The readable part of the document, and whether it is one valid object."""
    # Bytes that are not UTF-8 become lone surrogates, which valid texts do not contain.
    text = blob.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    document: dict[str, Value] = {}
    intact = False
    try:
        position = blank(text, 0)
        if text[position : position + 1] == "{":
            position = blank(text, read_container(text, position, document))
            intact = position == len(text)
    except Damage:
        pass
    return Value("object", text, 0, None, document), intact


def read_container(text: str, start: int, document: dict[str, Value]) -> int:
    """Read the object at ``start``, also if it is incomplete, into ``document``. Returns the position after it."""
    open_containers: list[tuple[str, int, Any, Any]] = [("object", start, document, None)]
    # The expected next token: a first member, a member after a comma, or (None) a token after a member.
    first: bool | None = True
    position = start + 1
    while open_containers:
        kind, began, content, _ = open_containers[-1]
        position = blank(text, position)
        character = text[position : position + 1]
        if character == {"object": "}", "array": "]"}[kind] and (first or first is None):
            position += 1
            _, _, _, place = open_containers.pop()
            put(open_containers, place, Value(kind, text, began, position, content))
            first = None
            continue
        if first is None:
            if character != ",":
                raise Damage
            position, first = blank(text, position + 1), False
            continue
        place = None
        if kind == "object":
            place, position = read_string(text, position)
            content.pop(place, None)
            position = blank(text, position)
            if text[position : position + 1] != ":":
                raise Damage
            position = blank(text, position + 1)
        character = text[position : position + 1]
        if character in ("{", "["):
            inner: Any = {} if character == "{" else []
            name = "object" if character == "{" else "array"
            if kind == "object":
                content[place] = Value(
                    name, text, position, None, inner
                )  # visible to the outer container even if it has no end
            open_containers.append((name, position, inner, place))
            position, first = position + 1, True
            continue
        value, position = read_scalar(text, position)
        put(open_containers, place, value)
        first = None
    return position


def put(open_containers: list[tuple[str, int, Any, Any]], place: str | None, value: Value) -> None:
    if not open_containers:
        return
    kind, _, content, _ = open_containers[-1]
    if kind == "object":
        content[place] = value
    else:
        content.append(value)


def blank(text: str, position: int) -> int:
    while text[position : position + 1] in (" ", "\t", "\n", "\r"):
        position += 1
    return position


def read_scalar(text: str, position: int) -> tuple[Value, int]:
    if text[position : position + 1] == '"':
        content, end = read_string(text, position)
        return Value("string", text, position, end, content), end
    match = TOKEN.match(text, position)
    if match is None:
        raise Damage
    kind = match[1] if match[1] in ("true", "false", "null") else "number"
    return Value(kind, text, position, match.end()), match.end()


def read_string(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise Damage
    position += 1
    units: list[str] = []
    while True:
        character = text[position : position + 1]
        if character == '"':
            return joined("".join(units)), position + 1
        if character == "\\":
            match = ESCAPE.match(text, position)
            if match is None:
                raise Damage
            units.append(json.loads(f'"{match[0]}"'))
            position = match.end()
            continue
        if character < " " or "\ud800" <= character <= "\udfff":  # also the end of the text
            raise Damage
        units.append(character)
        position += 1


def joined(text: str) -> str:
    """The text with surrogate pairs as one character, and half a pair as U+FFFD."""
    if text.isascii():
        return text
    text = re.sub(
        "[\ud800-\udbff][\udc00-\udfff]", lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# ---------------------------------------------------------------- the fields


def answers(blob: bytes) -> dict[str, Any]:
    """The expected results by function name; timestamps in microseconds, maps as lists of pairs."""
    document, intact = read(blob)
    answer: dict[str, Any] = {}
    for field, path in (
        ("op", "payload.op"),
        ("sequence_id", "payload.sequenceId"),
        ("db_type", "schema.source.dbType"),
        ("db_version", "schema.source.dbVersion"),
        ("database", "schema.source.dbName"),
        ("schema_name", "schema.source.schemaName"),
        ("table", "schema.source.tableName"),
        ("ddl_text", "payload.ddl.text"),
        ("version", "version"),
    ):
        answer[field] = text_of(at(document, path))
    answer["operation"] = CANONICAL.get(answer["op"] or "")
    for name, key in (
        ("event_time", "eventTime"),
        ("system_time", "systemTime"),
        ("checkpoint_time", "checkpointTime"),
    ):
        millis = integer(at(document, f"payload.timestamp.{key}"))
        answer[f"{name}_ms"] = millis
        answer[name] = None if millis is None or iso(millis) is None else millis * 1000
    columns, keys = whole("array", at(document, "schema.dataColumn")), whole("array", at(document, "schema.primaryKey"))
    answer["columns"] = None if columns is None else [column(item) for item in columns.content]
    answer["primary_key"] = None if keys is None else [text_of(item) for item in keys.content]
    dates = {item["name"] for item in declared(answer["columns"]) if item["type"] == "DATE"}
    images = {}
    for name in ("before", "after"):
        images[name] = image = whole("object", at(document, f"payload.{name}.dataColumn"))
        answer[name] = None if image is None else image_text(image)
        answer[f"{name}_map"] = None if image is None else image_map(image, dates)
    answer["ddl_meta"] = decoded(text_of(at(document, "payload.ddl.ddlMeta")))
    answer["error"] = error(document, intact)
    answer["is_valid"] = answer["error"] is None
    change = dict(answer)
    answer["change"] = change
    answer["tuple"] = tuple_columns(answer)
    answer["shard_key"] = shard_key(answer, images)
    return {f"datahub_{name}": value for name, value in answer.items()}


def at(value: Value | None, path: str) -> Value | None:
    for key in path.split("."):
        if value is None or value.kind != "object":
            return None
        value = value.content.get(key)
    return None if value is None or value.kind == "null" else value


def whole(kind: str, value: Value | None) -> Value | None:
    return value if value and value.kind == kind and value.text else None


def text_of(value: Value | None) -> str | None:
    if value is None or value.kind == "null":
        return None
    if value.kind == "string":
        content: str = value.content
        return content
    return mended(value.text) if value.kind in ("object", "array") and value.text else value.text


def integer(value: Value | None) -> int | None:
    if value is None or value.kind != "number" or not INTEGER.fullmatch(value.text or ""):
        return None
    digits = (value.text or "").lstrip("-")
    if len(digits) > 19:
        return None
    number = int(value.text or "")
    return number if -(2**63) <= number < 2**63 else None


def iso(millis: int) -> str | None:
    try:
        moment = EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + "Z"


def column(item: Value) -> dict[str, str | None] | None:
    if item.kind != "object":
        return None
    return {"name": text_of(at(item, "name")), "type": text_of(at(item, "type"))}


def declared(columns: list[dict[str, str | None] | None] | None) -> list[dict[str, str | None]]:
    """The columns with a name; of columns with the same name, the last one."""
    named = [item for item in columns or [] if item is not None and item["name"] is not None]
    return list({item["name"]: item for item in named}.values())


def image_text(image: Value) -> str:
    """The image as written, except for repeated keys and escapes that are half a surrogate pair."""
    members = raw_members(image.text or "")
    last = {key: number for number, (key, _) in enumerate(members)}
    kept = ",".join(text for number, (key, text) in enumerate(members) if last[key] == number)
    text = image.text or "" if len(last) == len(members) else "{" + kept + "}"
    return mended(text)


def mended(text: str) -> str:
    """JSON text with U+FFFD for each escape that is half a surrogate pair."""
    return SURROGATE.sub(lambda m: "\\ufffd" if HALF.fullmatch(m[0]) else m[0], text)


def raw_members(text: str) -> list[tuple[str, str]]:
    """The key of each member of a valid object, and the text of the member including its key."""
    members = []
    position = blank(text, 1)
    while text[position] != "}":
        start = position
        key, position = read_string(text, position)
        position = blank(text, blank(text, position) + 1)
        position = container_end(text, position) if text[position] in "{[" else read_scalar(text, position)[1]
        members.append((key, text[start:position]))
        position = blank(text, position)
        if text[position] == ",":
            position = blank(text, position + 1)
    return members


def container_end(text: str, position: int) -> int:
    depth = 0
    while True:
        if text[position] == '"':
            _, position = read_string(text, position)
            continue
        depth += (text[position] in "{[") - (text[position] in "}]")
        position += 1
        if depth == 0:
            return position


def image_map(image: Value, dates: set[str | None]) -> list[tuple[str, str | None]]:
    pairs = []
    for name, value in image.content.items():
        millis = integer(value) if name in dates else None
        pairs.append((name, (iso(millis) if millis is not None else None) or text_of(value)))
    return pairs


def decoded(text: str | None) -> bytes | None:
    if text is None or not BASE64.fullmatch(text):
        return None
    core = text.rstrip("=")
    return base64.b64decode(core + "=" * (-len(core) % 4))


def error(document: Value, intact: bool) -> str | None:
    if not intact:
        return "BAD_JSON"
    op = at(document, "payload.op")
    if op is None:
        return "MISSING_FIELD"
    if text_of(op) not in CANONICAL:
        return "UNKNOWN_OPCODE"
    time = at(document, "payload.timestamp.eventTime")
    if time is None:
        return "MISSING_FIELD"
    if integer(time) is None:
        return "BAD_FIELD"
    needed = ERRORS_NEED_IMAGE.get(text_of(op) or "")
    if needed is None:
        return None
    outer, inner = at(document, f"payload.{needed}"), at(document, f"payload.{needed}.dataColumn")
    if outer is None or (outer.kind == "object" and inner is None):
        return "MISSING_FIELD"
    return None if inner is not None and inner.kind == "object" else "BAD_FIELD"


def tuple_columns(answer: dict[str, Any]) -> dict[str, Any] | None:
    letter = LETTERS.get(answer["operation"] or "")
    if letter is None:
        return None
    before = answer["operation"] in ("UPDATE_BEFORE", "DELETE")
    return {
        "_sequence_id_": answer["sequence_id"],
        "_operation_type_": letter,
        "_excute_time_": answer["event_time_ms"],
        "_source_table_": answer["table"],
        "_before_image_": "Y" if before else "N",
        "_after_image_": "N" if before else "Y",
    }


def shard_key(answer: dict[str, Any], images: dict[str, Value | None]) -> str | None:
    image = images["after"] or images["before"]
    table: str | None = answer["table"]
    if image is None or not answer["primary_key"]:
        return table
    return "[" + ",".join(canonical(image.content.get(name)) for name in dict.fromkeys(answer["primary_key"])) + "]"


def canonical(value: Value | None) -> str:
    if value is None or value.kind == "null":
        return "null"
    if value.kind != "string":
        return mended(value.text or "")
    return re.sub(r"\\(u....|.)", lambda m: m[0][:2] + m[0][2:].upper(), json.dumps(value.content, ensure_ascii=False))
