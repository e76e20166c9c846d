"""Write `kafka/cluster/definitions.json`, Kafka's message definitions: ``python -m tools.kafka_definitions``.

Kafka's jars contain them as JSON. Those of internal topics come from all releases, the newest first: a version that a newer
release defines is not read from an older one. For a new Kafka release, add a line to ``RELEASES`` and run this again.

Each line is a message: the topic, ``key``, ``value`` or ``control``, the number that identifies it in records (``apiKey``; for
control records, their type), and Kafka's definition without comments.
"""

from __future__ import annotations

import io
import json
import re
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tools.pythons import ROOT

RELEASES: Final = (
    "4.4.0", "4.3.0", "4.2.0", "4.1.0", "4.0.0",
    "3.9.1", "3.8.1", "3.7.2", "3.6.2", "3.5.2", "3.4.1", "3.3.2", "3.2.3", "3.1.2", "3.0.2", "2.8.2",
)  # fmt: skip
"""2.0 to 2.7 do not have definitions as data; they wrote the versions of 2.8"""
COORDINATORS: Final = {
    "kafka-group-coordinator": "__consumer_offsets",
    "kafka-transaction-coordinator": "__transaction_state",
    "kafka-share-coordinator": "__share_group_state",
    "kafka_2.13": "__consumer_offsets",
}
ARTIFACTS: Final = ("kafka-clients", "kafka-metadata", "kafka-storage", *COORDINATORS)
TARGET: Final = ROOT / "udfs/sparkwire/kafka/cluster/definitions.json"
REPOSITORY: Final = "https://repo1.maven.org/maven2/org/apache/kafka"

CONTROL: Final = {
    "LeaderChangeMessage": 2,
    "SnapshotHeaderRecord": 3,
    "SnapshotFooterRecord": 4,
    "KRaftVersionRecord": 5,
    "VotersRecord": 6,
}
CONTROL_KEY: Final = "ControlRecordTypeSchema"
EMBEDDED: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
"""in the members of a classic group"""
FIELD: Final = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag")
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')

Message = dict[str, Any]


class Place(NamedTuple):
    """The topic and part of a message, and its number there."""

    topic: str
    part: str
    number: int


def main() -> int:
    by_name: dict[Place, list[Message]] = {}
    covered: dict[Place, set[int]] = {}
    for release in RELEASES:
        for place, message in _messages(release):
            versions = _versions(message)
            if versions - covered.setdefault(place, set()):
                by_name.setdefault(place, []).append(message)
                covered[place] |= versions
    lines = [
        json.dumps({**place._asdict(), **message}, separators=(",", ":"))
        for place, messages in sorted(by_name.items())
        for message in messages
    ]
    TARGET.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    sys.stdout.write(f"{TARGET.relative_to(ROOT)}: {len(lines)} definitions, {TARGET.stat().st_size:,} bytes\n")
    return 0


def _messages(release: str) -> Iterator[tuple[Place, Message]]:
    """The messages of internal topics of a release."""
    raws = [
        (artifact, path, _without_comments(text))
        for artifact in ARTIFACTS
        for path, text in _resources(artifact, release)
    ]
    # Until 3.9 a key's version is its number, and a value's number is that of its key.
    numbers = {raw["name"]: sorted(_versions(raw)) for _, _, raw in raws if raw["name"].endswith("Key")}
    for artifact, path, raw in raws:
        for topic, part, number in _places(artifact, path, raw, numbers):
            old_key = part == "key" and "apiKey" not in raw
            yield Place(topic, part, number), _plain(raw | {"validVersions": "0"} if old_key else raw, anew=old_key)


def _without_comments(text: str) -> Message:
    # Like Jackson, stop at the end of the object, because the definitions of some releases have text after it.
    raw: Message = json.JSONDecoder().raw_decode(_COMMENT.sub(lambda match: match[1] or "", text).strip())[0]
    return raw


def _versions(message: Message) -> set[int]:
    low, _, high = message["validVersions"].partition("-")
    return set() if low == "none" else set(range(int(low), int(high or low) + 1))


def _resources(artifact: str, release: str) -> Iterator[tuple[str, str]]:
    url = f"{REPOSITORY}/{artifact}/{release}/{artifact}-{release}.jar"
    try:
        with urllib.request.urlopen(url) as response:
            jar = zipfile.ZipFile(io.BytesIO(response.read()))
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return  # this release does not have the artifact
    for path in sorted(jar.namelist()):
        if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", path):
            yield path, jar.read(path).decode()


def _places(artifact: str, path: str, raw: Message, numbers: dict[str, list[int]]) -> Iterator[tuple[str, str, int]]:
    """The topic, the part and the number of a message; none for one that no internal topic has."""
    name = raw["name"]
    if name in CONTROL:
        yield "__cluster_metadata", "control", CONTROL[name]
    elif name == CONTROL_KEY:
        yield "__cluster_metadata", "key", 0
    elif name in EMBEDDED:
        yield "__consumer_offsets", "embedded", EMBEDDED.index(name)
    elif path.startswith("common/metadata/"):
        yield "__cluster_metadata", "value", raw["apiKey"]
    elif artifact == "kafka-storage" and "apiKey" in raw:
        yield "__remote_log_metadata", "value", raw["apiKey"]
    elif artifact in COORDINATORS and name.endswith(("Key", "Value")):
        topic = "__transaction_state" if name.startswith("TransactionLog") else COORDINATORS[artifact]
        key = name.removesuffix("Value").removesuffix("Key") + "Key"
        for number in [raw["apiKey"]] if "apiKey" in raw else numbers[key]:
            yield topic, "key" if name == key else "value", number


def _plain(raw: Message, *, anew: bool) -> Message:
    """What of a message tells how it is read; ``anew`` gives its fields the versions of newer keys."""
    return {
        "name": raw["name"],
        "validVersions": raw["validVersions"],
        "flexibleVersions": raw.get("flexibleVersions", "none"),
        "fields": _fields(
            raw["fields"], {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", ())}, anew
        ),
    }


def _fields(fields: list[Message], structs: dict[str, list[Message]], anew: bool) -> list[Message]:
    """The fields, those of structures that have a name of their own in their place."""
    plain = []
    for field in fields:
        kept: Message = {name: field[name] for name in FIELD if name in field}
        inner = field.get("fields") or structs.get(field["type"].removeprefix("[]"))
        if inner:
            kept["fields"] = _fields(inner, structs, anew)
        plain.append(kept | {"versions": "0+"} if anew else kept)
    return plain


if __name__ == "__main__":
    sys.exit(main())
