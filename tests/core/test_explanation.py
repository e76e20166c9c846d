"""``sparkwire.explain``: finds the format out, shows every byte, says what is wrong."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import Row

import sparkwire
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.core.explain import DECOMPRESSED
from tests.avro.test_wire_formats import golden as golden_messages
from tests.support import kafka_cases
from tests.support.databus_damage import golden_rows
from tests.support.log_files import entry
from tools.explain_picture import picture


@pytest.mark.parametrize(
    ("sample", "verdict"),
    [
        ("event", "an event of Databus, V1, BIG_ENDIAN (sure: every checksum is right)"),
        ("event_v2", "an event of Databus, V2, BIG_ENDIAN (sure: every checksum is right)"),
        ("stream", "events of Databus (sure: every checksum is right)"),
        ("segment", "bytes of a Kafka log (sure: every checksum is right)"),
        ("message", "a message of Kafka (sure: every checksum is right)"),
    ],
)
def test_the_format_is_found(sample: str, verdict: str) -> None:
    assert repr(sparkwire.explain(SAMPLES[sample])).splitlines()[0] == verdict


def test_formats_are_told_apart() -> None:
    events, logs = golden_rows()[:60], [log.data for log in kafka_cases.logs() if len(log.data) < 3000]
    messages = [message for message, java in kafka_cases.messages(1) if java["isValid"]][:40]
    for data, format in [
        *((event, "an event of Databus") for event in events),
        *((log, "bytes of a Kafka log") for log in logs),
        *((message, "a message of Kafka") for message in messages),
    ]:
        (part,) = sparkwire.explain(data).parts
        assert part.format.startswith(format), data.hex()


def test_damaged_bytes_are_less_sure() -> None:
    event = SAMPLES["event"]
    damaged = {
        event[:-1] + b"!": "likely: 1 of 2 checksums are right",
        event[:12] + b"!" + event[13:]: "likely: 1 of 2 checksums are right",
        event[:12] + b"!" + event[13:-1] + b"!": "likely: the sizes fit, no checksum is right",
        event[:12] + b"!" + event[13:-1]: "a guess: by the version byte or the magic byte",
        SAMPLES["segment"][:-1]: "likely: 2 of 3 checksums are right",
        b"hello, this is nothing of the kind": "unlikely: neither checksums nor sizes nor versions fit",
    }
    for data, sure in damaged.items():
        (part,) = sparkwire.explain(data).parts
        assert part.confidence[1] == sure
        own = [line for line in part.lines if not (line.note or "").startswith(DECOMPRESSED)]
        assert sum(line.size for line in own) == len(data)


def test_confluents_messages_are_told_from_events() -> None:
    data = bytes.fromhex("000000002a") + b"\xd4\x0f\x0ahello"
    (part,) = sparkwire.explain(data).parts
    assert part.format == "a message with Confluent's wire format header, schema 42"
    assert [(line.position, line.size, line.field) for line in part.lines] == [
        (0, 1, "magic"),
        (1, 4, "schema_id"),
        (5, 8, "payload"),
    ]
    for event in golden_rows()[::16]:
        for other in (event, event[:-1], event[:20]):
            assert "Confluent" not in sparkwire.explain(other).parts[0].format, other.hex()


@pytest.mark.parametrize("name", ["apicurio", "glue", "single_object"])
def test_messages_of_other_registries(name: str) -> None:
    for line in golden_messages():
        if line["format"] == name and line["headers"] is None:
            data = bytes.fromhex(line["value"])
            (part,) = sparkwire.explain(data).parts
            assert part.format.endswith(f", schema {line['id']}")
            own = [line for line in part.lines if not (line.note or "").startswith(DECOMPRESSED)]
            assert sum(line.size for line in own) == len(data)
            assert own[-1].field == "payload"


def test_what_zlib_cannot_read_is_said() -> None:
    (part,) = sparkwire.explain(bytes([3, 5, *range(16)]) + b"what").parts
    assert part.format == "a message with AWS Glue's header, schema 00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (part.lines[-1].note or "").startswith("BAD_FIELD: not what zlib compresses: ")


@pytest.mark.parametrize("sample", ["event", "event_v2", "message", "segment"])
def test_a_flipped_bit_is_found(sample: str) -> None:
    """Every bit that a checksum covers, but for those that say how far it reaches or what kind of bytes these are."""
    whole, chance = SAMPLES[sample], Random(7)
    explain = {"event": "dbus_explain", "event_v2": "dbus_explain"}.get(sample, "kafka_explain")
    if sample == "message":  # its log entry
        whole = struct.pack(">qi", 7, len(whole)) + whole
    result = 0
    for _ in range(60):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        lines = FUNCTIONS[explain].decode(pa.array([bytes(damaged)]))[0].as_py()
        notes = " ".join(line["note"] or "" for line in lines)
        blamed = re.findall(r"one flipped bit explains it, bit (\d) of byte (\d+), in (\S+)", notes)
        assert set(blamed) <= {(str(bit), str(at), name) for *_, name in blamed}
        for *_, name in blamed:
            (line,) = [line for line in lines if line["field"] == name.rstrip(";")]
            assert line["position"] <= at < line["position"] + line["size"]
            assert f"byte {at} was {whole[at]:#04x} if one bit has flipped" in line["note"]
        result += bool(blamed) or "of the checksum itself" in notes
    assert result > 35


def test_two_flipped_bits_are_not_blamed_on_one() -> None:
    damaged = bytearray(SAMPLES["event"])
    damaged[20] ^= 1
    damaged[40] ^= 4
    assert "flipped" not in repr(sparkwire.explain(bytes(damaged)))


def test_every_byte_is_in_the_dump() -> None:
    for data in (SAMPLES["event"], SAMPLES["event_v2"]):
        dump = repr(sparkwire.explain(data)).splitlines()[1:]
        assert "".join(line[10:34].replace(" ", "") for line in dump) == data.hex()


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = SAMPLES["event"][:12] + b"!" + SAMPLES["event"][13:]
    shown = repr(sparkwire.explain(damaged))
    assert "\x1b" not in shown
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = repr(sparkwire.explain(damaged))
    assert "\x1b[31m32 81 36 c6" in coloured  # the wrong checksum is red
    assert re.sub("\x1b\\[\\d*m", "", coloured).split() == shown.split()
    monkeypatch.setenv("NO_COLOR", "1")
    assert repr(sparkwire.explain(damaged)) == shown


class Cells(HTMLParser):
    """The texts of a table's values."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_a_notebook_has_a_table() -> None:
    explanation = sparkwire.explain(SAMPLES["event"][:61] + b"<b>!<")
    reader = Cells()
    reader.feed(explanation._repr_html_())
    assert len(reader.cells) == 5 * len(explanation.parts[0].lines)
    assert reader.cells[-2] == "<b>!<"


def test_a_row_is_explained_by_its_binaries() -> None:
    row = Row(id=1, before=bytearray(SAMPLES["event"]), note="text", after=None, value=SAMPLES["segment"])
    parts = sparkwire.explain(row).parts
    assert [part.column for part in parts] == ["before", "value"]
    assert repr(sparkwire.explain(row)).startswith("before: an event of Databus")


@pytest.mark.parametrize("value", [3, "text", None, Row(id=1)])
def test_what_cannot_be_explained(value: object) -> None:
    with pytest.raises(
        TypeError, match=r"^explain takes bytes, or a Row with a BINARY column that is not NULL, got \w+$"
    ):
        sparkwire.explain(value)


def test_the_picture_shows_the_damage() -> None:
    texts = [element.text or "" for element in ElementTree.fromstring(picture()).iter()]
    assert any(text.startswith("HEADER_CRC_MISMATCH: ") for text in texts)


@pytest.mark.parametrize("values_of", [[b"a"], [b"abc" * 20, b"def"], [bytes(300)] * 3])
def test_a_bit_flipped_in_what_no_checksum_covers(values_of: list[bytes]) -> None:
    """In the size or the magic byte of a batch: it is a batch, whatever else the bytes look like."""
    batch = entry(7, values_of)
    for position in (8, 9, 10, 11, 16):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[position] ^= 1 << bit
            (part,) = sparkwire.explain(bytes(flipped)).parts
            assert part.format == "bytes of a Kafka log", (position, bit)
            assert part.confidence[1] == "sure: every checksum is right", (position, bit)
            (wrong,) = [line for line in part.lines if line.code]
            assert wrong.field == ("batch[0].magic" if wrong.code == "BAD_MAGIC" else "batch[0].size"), (position, bit)
            values = [line.data for line in part.lines if line.field.endswith("].value")]
            assert values == [value for value in values_of if value], (position, bit)
