"""A broker and a relay that do random things to their files, and the expected results of a stream over them.

Each knows what it has written. The next results of a query, and data losses, are computed from that alone.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sparkwire.errors import DataLossError
from tests.support.client_streams import end, event
from tests.support.log_files import entry
from tests.support.stream import Stream, events_of, kafka

Row = dict[str, Any]
LONG_AGO = 1_700_000_000
"""a time of a file's last write, in seconds"""


@dataclass(eq=False)
class Batch:
    """A record batch, valid or corrupt."""

    base: int
    stop: int
    data: bytes
    values: list[str]
    valid: bool = True


@dataclass(eq=False)
class Segment:
    base: int
    batches: list[Batch] = field(default_factory=list)
    compressed: bool = False
    torn: bytes = b""

    @property
    def stop(self) -> int:
        """The offset after its last valid batch."""
        return max((batch.stop for batch in self.batches if batch.valid), default=self.base)

    @property
    def ends_valid(self) -> bool:
        return not self.batches or self.batches[-1].valid


class Broker:
    """A partition's directory."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.segments = [Segment(0)]
        self.epoch = self.written = 0
        self.given: Batch | None = None
        self.next = 0
        self.new_query()

    def new_query(self) -> None:
        self.query = kafka(self.folder.parent)

    # -- events of a log

    def append(self) -> None:
        active = self.segments[-1]
        active.torn = b""
        for _ in range(self.chance.randrange(1, 5)):
            base = self._next_offset()
            values = []
            for offset in range(base, base + self.chance.randrange(1, 5)):
                self.written += 1
                values.append(f"{self.written}:{offset}" + "x" * self.chance.randrange(30))
            data = entry(base, (value.encode() for value in values), self.epoch)
            active.batches.append(Batch(base, base + len(values), data, values))

    def tear(self) -> None:
        """Write only a part of a batch."""
        data = entry(self._next_offset(), [b"never whole" * 9], self.epoch)
        self.segments[-1].torn = data[: self.chance.randrange(1, len(data))]

    def hole(self) -> None:
        """Write pages of zeros, as if they never reached the disk, and continue the log."""
        self.append()
        at = self._next_offset()
        zeros = bytes(self.chance.choice([13, 500, 4096, 9000]))
        self.segments[-1].batches.append(Batch(at, at, zeros, [], valid=False))
        self.append()

    def roll(self) -> None:
        self.segments[-1].torn = b""
        if self.segments[-1].batches:
            self.segments.append(Segment(self._next_offset()))

    def truncate(self) -> None:
        """Truncate the log, as after an unclean election of a leader with fewer records."""
        self.segments[-1].torn = b""
        while len(self.segments) > 1 and self.chance.random() < 0.3:
            self.segments.pop()
        batches = self.segments[-1].batches
        del batches[self.chance.randrange(len(batches) + 1) :]
        while batches and not batches[-1].valid:
            batches.pop()
        self.segments[-1].compressed = False
        self.epoch += 1

    def recreate(self) -> None:
        self.segments = [Segment(0)]
        self.epoch = 0
        for _ in range(self.chance.randrange(4)):
            self.append()
            if self.chance.random() < 0.3:
                self.roll()

    def retain(self) -> None:
        del self.segments[: self.chance.randrange(len(self.segments))]

    def lose(self) -> None:
        if len(self.segments) > 2:
            del self.segments[self.chance.randrange(1, len(self.segments) - 1)]

    def compress(self) -> None:
        if len(self.segments) > 1:
            self.segments[self.chance.randrange(len(self.segments) - 1)].compressed = True

    def damage(self) -> None:
        """Corrupt a byte of a record, or the size of a batch that was not read yet."""
        batches = [batch for segment in self.segments for batch in segment.batches if batch.values]
        if not batches:
            return
        batch = self.chance.choice(batches)
        at = self.chance.randrange(61, len(batch.data))
        if batch.base >= self.next and self.chance.random() < 0.3:
            at = 10  # a size of another 256 times as many bytes
        data = bytearray(batch.data)
        data[at] ^= 1 << self.chance.randrange(8)
        batch.data, batch.valid = bytes(data), False

    def restart(self) -> None:
        self.query.restart()

    def _next_offset(self) -> int:
        """The next offset, as the broker knows it."""
        return max([self.segments[-1].base, *(batch.stop for segment in self.segments for batch in segment.batches)])

    def write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for segment in self.segments:
            data = b"".join(batch.data for batch in segment.batches) + segment.torn
            path = self.folder / f"{segment.base:020}.log"
            if segment.compressed:
                path.with_suffix(".log.gz").write_bytes(gzip.compress(data, mtime=0))
            else:
                path.write_bytes(data)

    # -- expected results of a query

    def has_lost(self) -> bool:
        first = self.segments[0].base
        known = [batch for segment in self.segments for batch in segment.batches]
        end = max(self.end(), self.given.stop if self.given in known and self.given is not None else 0)
        if first > self.next or end < self.next:
            return True
        if self.given is not None and self.given not in known and self.given.base >= first:
            return True
        return any(batch.base < self.next < batch.stop for batch in self.valid())

    def has_gap(self) -> bool:
        """Whether a segment is missing in the data to read next."""
        begun = False
        for segment, following in zip(self.segments, self.segments[1:], strict=False):
            begins = segment.base <= self.next < following.base
            begun |= begins
            # If corrupt bytes end a segment, their content is unknown, except for a query that has read later data.
            behind = begins and self.next >= max((batch.stop for batch in segment.batches), default=self.next)
            if begun and segment.stop < following.base and (segment.ends_valid or behind):
                return True
        return False

    def valid(self) -> list[Batch]:
        return [batch for segment in self.segments for batch in segment.batches if batch.valid]

    def end(self) -> int:
        """The offset after the last valid batch."""
        return max(segment.stop for segment in self.segments)

    def poll(self, max_bytes: int | None = None) -> None:
        if not self.query.place["logs"]:  # a new log starts at its first offset
            self.next = self.segments[0].base
        lost, gap, rows = self.has_lost(), self.has_gap(), list[Row]()
        try:
            rows = self.query.batch(max_bytes)
            assert not lost, "something is lost, and nobody says so"
            assert not gap or max_bytes is not None, "a segment is missing, and nobody says so"
        except DataLossError:
            if not (lost or gap):
                raise
            rows = self.query.lenient_batch()
            lost, max_bytes = True, None
        result = [row["value"].decode() for row in rows if row["error"] is None]
        want = [value for batch in self.valid() for k, value in enumerate(batch.values) if batch.base + k >= self.next]
        assert result == want[: len(result)]
        assert max_bytes is not None or result == want
        if result:
            self.given = next(batch for batch in self.valid() if result[-1] in batch.values)
            assert result[-1] == self.given.values[-1]
            self.next = self.given.stop
        elif lost:
            self.given = self.valid()[-1] if self.valid() else None
        if lost:
            self.next = self.end()
        # After corrupt bytes, the name of the next segment contains the next offset.
        (kept,) = self.query.place["logs"].values()
        if not any(self.next <= batch.base < kept["next"] for batch in self.valid()):
            self.next = max(self.next, kept["next"])


@dataclass(eq=False)
class Item:
    """An event in a file."""

    data: bytes
    key: int | None
    """None for an end of period"""
    scn: int
    valid: bool = True


class Window(NamedTuple):
    """A complete window."""

    items: list[Item]
    file: str
    stop: int
    """the number of items in the file up to the window's end"""


class Relay:
    """A directory of event files."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.files: dict[str, list[Item]] = {"part.0000": []}
        self.compressed: set[str] = set()
        self.torn = b""
        self.keys = self.number = 0
        self.scn = 10
        self.read: set[str] = set()
        self.file, self.prefix, self.waited = "", list[Item](), False
        self.last_scn = 0
        self.new_query()

    def new_query(self) -> None:
        self.query = events_of(self.folder, stream="directory", columns="key_long,event_type,error,window_scn,file")

    # -- events of files

    def append(self) -> None:
        self.torn = b""
        items = self.files[self._active()]
        for _ in range(self.chance.randrange(1, 6)):
            if self.chance.random() < 0.35:
                items.append(Item(end(self.scn), None, self.scn))
                self.scn += 10
            else:
                self.keys += 1
                items.append(
                    Item(event(self.scn, 40, self.keys, b"v" * self.chance.randrange(50)), self.keys, self.scn)
                )

    def tear(self) -> None:
        data = event(self.scn, 40, 7, b"torn" * 20)
        self.torn = data[: self.chance.randrange(1, len(data))]

    def roll(self) -> None:
        self.torn = b""
        if self.files[self._active()]:
            self.number += 1
            self.files[f"part.{self.number:04}"] = []

    def truncate(self) -> None:
        self.torn = b""
        items = self.files[self._active()]
        del items[self.chance.randrange(len(items) + 1) :]

    def recreate(self) -> None:
        self.torn = b""
        self.files[self._active()] = []
        self.append()

    def compress(self) -> None:
        names = sorted(self.files)[:-1]
        if names:
            self.compressed.add(self.chance.choice(names))

    def retain(self) -> None:
        """Delete a file that was read."""
        for name in sorted(self.files)[:-1]:
            if name in self.read or (name == self.file and len(self.prefix) == len(self.files[name])):
                del self.files[name]
                return

    def damage(self) -> None:
        """Corrupt an event that was not read yet."""
        unread = (items for name, items in self.files.items() if name not in self.read)
        items = [item for items in unread for item in items if item not in self.prefix and item.valid]
        if items:
            item = self.chance.choice(items)
            data = bytearray(item.data)
            data[self.chance.randrange(1, 50)] ^= 1 << self.chance.randrange(8)
            item.data, item.valid = bytes(data), False

    def restart(self) -> None:
        self.query.restart()

    def _active(self) -> str:
        return max(self.files)

    def write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, items in self.files.items():
            data = b"".join(item.data for item in items) + (self.torn if name == self._active() else b"")
            path = self.folder / name
            if name in self.compressed and name != self._active():
                path = self.folder / f"{name}.gz"
                path.write_bytes(gzip.compress(data, mtime=0))
            else:
                path.write_bytes(data)
            if name != self._active():  # the relay has written it long ago, so it does not grow
                os.utime(path, (LONG_AGO, LONG_AGO))

    # -- expected results of a query

    def has_lost(self) -> bool:
        """Whether the data that were read last have changed or no longer exist."""
        if self.file not in self.files:
            return self.waited
        return self.files[self.file][: len(self.prefix)] != self.prefix

    def windows(self) -> Iterator[Window]:
        """The complete windows from a position on."""
        window: list[Item] = []
        for name in sorted(set(self.files) - self.read):
            first = len(self.prefix) if name == self.file else 0
            for k, item in enumerate(self.files[name][first:], first + 1):
                window.append(item)
                if item.key is None and item.valid:
                    yield Window(window, name, k)
                    window = []

    def poll(self, max_bytes: int | None = None) -> None:
        lost, rows = self.has_lost(), list[Row]()
        try:
            rows = self.query.batch(max_bytes)
            assert not lost, "something is lost, and nobody says so"
        except DataLossError:
            if not lost:
                raise
            rows = self.query.lenient_batch()
            self.file, self.prefix, self.waited = "", [], False
            max_bytes = None
        result = [row["key_long"] for row in rows if row["event_type"] == "DATA" and row["error"] is None]
        windows = list(self.windows())
        new = [window for window in windows if window.items[-1].scn > self.last_scn]
        want = [item.key for window in new for item in window.items if item.valid and item.key is not None]
        assert result == want[: len(result)]
        assert max_bytes is not None or result == want
        ended = {row["window_scn"] for row in rows}
        assert None not in ended
        for window in windows:
            if lost or window.items[-1].scn in ended:
                self.read |= {name for name in self.files if name < window.file}
                self.file, self.prefix = window.file, self.files[window.file][: window.stop]
                self.last_scn = max(self.last_scn, window.items[-1].scn)
                self.waited = window.stop < len(self.files[window.file]) or (
                    window.file == self._active() and self.torn != b""
                )
        self.read &= set(self.files)


def run(make: Callable[[Path, random.Random], Any], folder: Path, seed: int, steps: int) -> dict[str, int]:
    """Run random events with queries in between. Returns how often each event happened."""
    chance = random.Random(seed)
    world = make(folder, chance)
    usual = ["append", "append", "append", "poll", "poll", "limited", "tear", "roll", "restart"]
    rare = ["truncate", "recreate", "retain", "lose", "compress", "damage", "hole"]
    happened: dict[str, int] = {}
    for step in range(steps):
        name = chance.choice(usual if chance.random() < 0.8 else rare)
        happened[name] = happened.get(name, 0) + 1
        try:
            if name in ("poll", "limited"):
                world.write()
                world.poll(chance.randrange(200, 2000) if name == "limited" else None)
            elif hasattr(world, name):
                getattr(world, name)()
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {step}: {error}") from error
    world.write()
    world.poll()
    return happened


__all__ = ["Broker", "Relay", "Stream", "run"]
