"""``sparkwire.explain``: finds the format out, shows every byte, says what is wrong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from pyspark.sql import Row

import sparkwire
from sparkwire.catalogue import SAMPLES
from sparkwire.catalogue.explain_picture import picture
from sparkwire.core.dump import DECOMPRESSED
from tests.support import kafka_cases
from tests.support.databus_damage import golden_rows


@pytest.mark.parametrize(
    ("sample", "verdict"),
    [
        ("event", "an event of Databus, V1, BIG_ENDIAN (sure: its checksums are right)"),
        ("event_v2", "an event of Databus, V2, BIG_ENDIAN (sure: its checksums are right)"),
        ("stream", "events of Databus (likely: 3 of 4 have right checksums)"),
        ("segment", "bytes of a Kafka log (sure: all its checksums are right)"),
        ("message", "a message of Kafka, magic 1 (sure: its checksum is right)"),
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
        event[:-1] + b"!": "likely: its header's checksum is right",
        event[:12] + b"!" + event[13:]: "likely: its length is that of the bytes, its checksums are wrong",
        SAMPLES["segment"][:-1]: "likely: 2 of 3 entries have a right checksum",
        b"hello, this is nothing of the kind": "unlikely: neither checksums nor lengths nor versions fit",
    }
    for data, sure in damaged.items():
        (part,) = sparkwire.explain(data).parts
        assert part.sure == sure
        own = [line for line in part.lines if not (line.note or "").startswith(DECOMPRESSED)]
        assert sum(line.size for line in own) == len(data)


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
    """The texts of a table's cells."""

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
    assert [part.title for part in parts] == ["before", "value"]
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
