"""Draw a partition over its offsets, from its batches.

Offsets go from left to right, in `COLUMNS` columns, about the width of a screen. If the batches of a column differ, the column
shows the most serious state: corruption before a gap, an open transaction before an aborted one.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import printable, value_error
from sparkwire.kafka.codecs import readable
from sparkwire.kafka.files import kafka_log

COLUMNS: Final = 1200
_READ: Final = (
    "topic, partition, base_offset, last_offset, size, max_timestamp_ms, compression, partition_leader_epoch, is_transactional, "
    "is_control, file, tier, hidden, error"
)
_MOST_BORDERS: Final = 200
"""largest number of segments that are drawn with a border; with more, the borders would hide the bars"""
_EXACT: Final = 2**52
"""offsets beyond this are not exact as floating-point numbers"""
_LAST_DATE: Final = 221_845_392_000_000
"""later timestamps are not drawn, because an axis of dates ends with the year 9999 [ms since epoch]"""
_WIDTH, _HEIGHT = 12.0, 7.0  # [inches]
_GREY: Final = "#444444"
_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))

Ints = npt.NDArray[np.int64]


class Shade(NamedTuple):
    """A state of a column in a strip, and its colour. In a list of shades, a later state hides an earlier one."""

    name: str
    colour: str


NOTHING: Final = Shade("", "#ffffff")
TIERS: Final = (NOTHING, Shade("on disk", "#4878a8"), Shade("in the bucket", "#9ab8d4"))
_CODEC_COLOURS: Final = ("#cfcfcf", "#8d6e63", "#7e9c5a", "#c9a227", "#7a5195", "#3c8d8a", "#b5651d", "#5b6abf")
"""a colour for each possible codec"""
CODECS: Final = (NOTHING, *(Shade(codec.name, _CODEC_COLOURS[codec.id]) for codec in readable(2)))
TRANSACTIONS: Final = (
    NOTHING, Shade("none", "#e4e4e4"), Shade("committed", "#59a14f"), Shade("aborted", "#e15759"), Shade("open", "#f28e2b"),
)  # fmt: skip
EPOCHS: Final = ("#b0bec5", "#607d8b")
"""colours of alternating epochs"""
FAULTS: Final = (NOTHING, Shade("valid", "#dfeadf"), Shade("gap", "#000000"), Shade("corrupt", "#d7191c"))
STRIPS: Final = ("tier", "codec", "transactions", "epoch", "corruption")


class DrawnBatches(NamedTuple):
    """The batches of one partition, in the order of offsets."""

    name: str
    table: pa.Table
    first: Ints
    """first offset of each batch; for bytes that are not a batch, the last offset before them"""
    last: Ints

    def column(self, name: str, default: Any) -> npt.NDArray[Any]:
        return np.asarray(pc.fill_null(self.table[name], default).to_numpy(zero_copy_only=False))


class Picture:
    """A picture of a partition. A notebook shows it, ``save`` writes it to a file."""

    def __init__(self, title: str, figure: Any) -> None:
        self.title = title
        self.figure = figure
        """a ``matplotlib.figure.Figure``"""

    def __repr__(self) -> str:
        return printable(f"Picture({self.title})")

    def save(self, path: str | Path) -> None:
        """Write the picture to a file. The name's suffix determines the format (``.png``, ``.svg``, ``.pdf``)."""
        self.figure.savefig(path)

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format="png")
        return out.getvalue()


def batches_of(path: str, topic: str | None, partition: int | None, options: dict[str, str]) -> DrawnBatches:
    """The batches of the selected partition; ValueError if not exactly one partition is selected."""
    query = kafka_log.query({"path": path, "rows": "batches", "columns": _READ, **options})
    of = [("topic", "=", topic)] * (topic is not None) + [("partition", "=", partition)] * (partition is not None)
    tasks = kafka_log.plan(kafka_log.with_filters(query, of))
    names = sorted({(part.segment.topic or "", part.segment.partition or 0) for task in tasks for part in task})
    if len(names) != 1:
        some = ", ".join(f"{name}-{number}" for name, number in names[:5])
        raise value_error(
            f"picture draws one partition: pass topic and partition; {path} has {some or 'no batches of it'}"
        )
    batches = [batch for task in tasks for batch in kafka_log.read(query, task)]
    table = pa.Table.from_batches(batches, kafka_log.schema(query))
    name, number = names[0]
    return DrawnBatches(f"{name}-{number}", table, *_offsets(table))


def _offsets(table: pa.Table) -> tuple[Ints, Ints]:
    """The first and last offset of each batch. Those of a corrupt batch count only if they are between its neighbours'
    offsets.
    """
    base, last = (np.asarray(pc.fill_null(table[name], -1).to_numpy()) for name in ("base_offset", "last_offset"))
    valid = np.asarray(pc.is_null(table["error"]).to_numpy()) & (base >= 0) & (last >= base)
    before = np.maximum.accumulate(np.concatenate([[-1], np.where(valid, last, -1)]))[:-1]
    most = np.iinfo(np.int64).max
    after = np.minimum.accumulate(np.concatenate([np.where(valid, base, most), [most]])[::-1])[::-1][1:]
    likely = valid | ((base > before) & (last >= base) & (last < after) & (after < most))
    place = np.where(before >= 0, before, np.where(after < most, after, 0))
    return np.where(likely, base, place), np.where(likely, last, place)


class PictureColumns:
    """The columns of a picture, and the offsets of a partition in each."""

    def __init__(self, batches: DrawnBatches) -> None:
        self.begin = int(batches.first.min()) if len(batches.first) else 0
        self.end = int(batches.last.max(initial=self.begin)) + 1
        self.count = min(COLUMNS, max(1, self.end - self.begin))
        self.origin = self.begin if self.begin > _EXACT else 0
        """the offset at position 0 of the axis"""
        self._from, self._to = self.of(batches.first), self.of(batches.last)

    def of(self, offsets: Ints) -> Ints:
        """The column of each offset."""
        width = self.end - self.begin
        from_begin = offsets - self.begin
        if width > np.iinfo(np.int64).max // self.count:  # the product would overflow 64 bits
            columns = (from_begin / width * self.count).astype(np.int64)
        else:
            columns = from_begin * self.count // width
        return np.clip(columns, 0, self.count - 1)

    def drawn(self, offsets: Any) -> Any:
        """The positions of offsets on the axis."""
        return offsets - self.origin

    def highest(self, kinds: Ints) -> Ints:
        """The highest kind of the batches in each column; 0 if the column has no batch."""
        heights = np.zeros(self.count, np.int64)
        np.maximum.at(heights, self._from, kinds)
        for k in np.flatnonzero(self._to > self._from):
            part = heights[self._from[k] : self._to[k] + 1]
            np.maximum(part, kinds[k], out=part)
        return heights

    def total(self, values: Ints) -> npt.NDArray[np.float64]:
        """The sum in each column. The value of a batch that spans several columns is split among them."""
        width = self._to - self._from + 1
        steps = np.zeros(self.count + 1)
        np.add.at(steps, self._from, values / width)
        np.subtract.at(steps, self._to + 1, values / width)
        return np.cumsum(steps[:-1])

    def missing(self, batches: DrawnBatches) -> Ints:
        """1 in the columns that have a gap: offsets between two batches that belong to neither."""
        gaps = np.flatnonzero(batches.first[1:] - 1 > batches.last[:-1])
        sums = np.zeros(self.count, np.int64)
        for k in gaps:
            begin, end = self.of(np.array([batches.last[k] + 1, batches.first[k + 1] - 1]))
            sums[begin : end + 1] = 1
        return sums


class Strip(NamedTuple):
    """The state of each column, as an index into ``kinds``."""

    kinds: Sequence[Shade]
    columns: Ints


def strips(batches: DrawnBatches, columns: PictureColumns) -> dict[str, Strip]:
    """The strips below the curves, by name, from the top."""
    codecs = [kind.name for kind in CODECS]
    named = batches.column("compression", "")
    corrupt = columns.highest(np.where(batches.column("error", "") != "", 3, 1))
    return {
        "tier": Strip(TIERS, columns.highest(np.where(batches.column("tier", "") == "local", 1, 2))),
        "codec": Strip(
            CODECS, columns.highest(np.array([codecs.index(name) if name in codecs else 0 for name in named], np.int64))
        ),
        "transactions": Strip(TRANSACTIONS, columns.highest(_transactions(batches))),
        "epoch": _epochs(batches, columns),
        "corruption": Strip(FAULTS, np.where(corrupt == 3, 3, np.maximum(corrupt, 2 * columns.missing(batches)))),
    }


def _transactions(batches: DrawnBatches) -> Ints:
    hidden = batches.column("hidden", "")
    transactional = batches.column("is_transactional", False).astype(bool)
    kinds = np.where(transactional, 2, 1)
    kinds[hidden == "ABORTED"] = 3
    kinds[(hidden == "OPEN") & transactional] = 4
    return kinds


def _epochs(batches: DrawnBatches, columns: PictureColumns) -> Strip:
    epochs, ranks = np.unique(batches.column("partition_leader_epoch", -1), return_inverse=True)
    kinds = [NOTHING]
    for turn, colour in enumerate(EPOCHS):
        named = [str(epoch) for epoch in epochs[turn::2]]
        kinds.append(Shade(", ".join(named if len(named) <= 4 else [*named[:3], "…"]), colour))
    return Strip(kinds, columns.highest(1 + ranks % 2))


def picture(path: str, *, topic: str | None = None, partition: int | None = None, **options: object) -> Picture:
    """Draw a partition: its bytes, times, tiers, codecs, transactions, epochs, gaps and corruption over its offsets.

    It verifies every batch, in this process, but decodes no records. It needs the extra ``picture``.

    Parameters
    ----------
    path
        the directory of a partition or a broker, or a bucket of tiered storage
    topic, partition
        the partition to draw, if there are several
    options
        options of ``spark.read.format("kafka_log")``: remotePath, encryptionKeys, startingOffset, endingOffset

    Returns
    -------
    Picture
        the picture. A notebook shows it, ``save`` writes it to a file, ``figure`` is the matplotlib figure

    Raises
    ------
    ValueError
        if the arguments do not select exactly one partition.

    Examples
    --------
    >>> sparkwire.kafka.picture("/var/kafka", topic="orders", partition=0).save("orders-0.png")
    """
    return draw(batches_of(path, topic, partition, {name: str(value) for name, value in options.items()}))


def draw(batches: DrawnBatches) -> Picture:
    """Draw the picture of a partition."""
    from matplotlib.dates import ConciseDateFormatter
    from matplotlib.figure import Figure

    columns = PictureColumns(batches)
    edges = np.linspace(columns.drawn(columns.begin), columns.drawn(columns.end), columns.count + 1)
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    segments, density, time, *below = figure.subplots(
        3 + len(STRIPS), 1, sharex=True, height_ratios=[4, 2, 2, *([0.7] * len(STRIPS))]
    )
    title = _segments(segments, batches, columns)
    segments.set_title(title)
    sizes = batches.column("size", 0).astype(np.int64)
    density.stairs(columns.total(sizes) * columns.count / (columns.end - columns.begin), edges, fill=True, color=_GREY)
    density.set_ylabel("bytes\nan offset")
    # Control batches are left out: they have the broker's time, records have their producer's.
    stamps = np.where(batches.column("is_control", False), 0, np.maximum(batches.column("max_timestamp_ms", -1), 0))
    times = columns.highest(stamps.astype(np.int64))
    drawn = (times > 0) & (times < _LAST_DATE)
    time.plot(edges[1:][drawn], times[drawn].astype("datetime64[ms]"), ".", color=_GREY, markersize=2)
    time.set_ylabel("latest\ntimestamp")
    time.yaxis.set_major_formatter(ConciseDateFormatter(time.yaxis.get_major_locator()))
    for axes, (name, strip) in zip(below, strips(batches, columns).items(), strict=True):
        _strip(axes, edges, name, strip)
    below[-1].set_xlabel(f"offset, from {columns.origin:,} on" if columns.origin else "offset")
    return Picture(title, figure)


def _segments(axes: Any, batches: DrawnBatches, columns: PictureColumns) -> str:
    """Draw a bar for each segment, as wide as its offsets and as high as its size. Return the title."""
    _, starts, of = np.unique(batches.column("file", ""), return_index=True, return_inverse=True)
    sizes = np.zeros(len(starts), np.int64)
    np.add.at(sizes, of, batches.column("size", 0).astype(np.int64))
    last = np.zeros(len(starts), np.int64)
    np.maximum.at(last, of, batches.last)
    local = batches.column("tier", "")[starts] == "local"
    step, unit = next((step, unit) for step, unit in _UNITS if sizes.max(initial=1) >= step)
    axes.bar(
        columns.drawn(batches.first[starts]),
        sizes / step,
        (last - batches.first[starts]).astype(np.float64) + 1,
        align="edge",
        color=np.where(local, TIERS[1].colour, TIERS[2].colour),
        edgecolor="white",
        linewidth=0.5 if len(starts) <= _MOST_BORDERS else 0,
    )
    axes.set_ylabel(f"segments\n[{unit}]")
    offsets, total = f"offsets {columns.begin:,} to {columns.end - 1:,}", f"{sizes.sum() / step:,.1f} {unit}"
    return f"{batches.name}: {offsets}, {len(batches.first):,} batches in {len(starts):,} segments, {total}"


def _strip(axes: Any, edges: npt.NDArray[np.float64], name: str, strip: Strip) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ListedColormap([kind.colour for kind in strip.kinds])
    axes.pcolormesh(
        edges, [0, 1], strip.columns[None, :], cmap=colours, vmin=-0.5, vmax=len(strip.kinds) - 0.5, rasterized=True
    )
    axes.set_yticks([])
    axes.set_ylabel(name, rotation=0, ha="right", va="center")
    shown = [strip.kinds[k] for k in np.unique(strip.columns) if k]
    axes.legend(
        handles=[Patch(color=kind.colour, label=kind.name) for kind in shown], ncols=3,
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8, handlelength=1, columnspacing=1,
    )  # fmt: skip
