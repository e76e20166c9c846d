"""The JSON values of a batch, and their conversion to columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.core.column import Binary, binary_of, build, empty, gather, primitive
from sparkwire.json.grammar import ABSENT, ARRAY, ESCAPED, NULL, OBJECT, STRING
from sparkwire.json.members import Members, count_members, find_last, list_members, list_roots
from sparkwire.json.scan import Paths, number_runs, scan_documents, scratch
from sparkwire.json.texts import (
    measure_canonical,
    measure_texts,
    read_integers,
    write_canonical,
    write_objects,
    write_texts,
)
from sparkwire.kernels import Bools, Bytes, Ints
from sparkwire.kernels.base64 import measure_decoded, write_decoded

Codes = npt.NDArray[np.int32]

_HEADER: Final = 5  # [bytes] of Confluent's wire format
_PIECE: Final = 1 << 16  # [items]
_LIKELY: Final = 32
"""Values that a batch of documents usually has at most, of all those that a tree selects. New memory costs as much as a scan."""


class Values(NamedTuple):
    """One value for each row; ``sparkwire.json.grammar`` defines spans and kinds."""

    data: Bytes
    starts: Ints
    sizes: Ints
    kinds: npt.NDArray[np.int8]
    counts: Ints
    """the number of members, for containers alone; of other values the number is not set"""

    @property
    def are_filled(self) -> Bools:
        """Values that exist, and are neither NULL nor an empty container."""
        are_filled: Bools = np.where(self.kinds < OBJECT, self.kinds > NULL, self.counts > 0)
        return are_filled

    @property
    def are_texts(self) -> Bools:
        """Values that are strings."""
        are_texts: Bools = (self.kinds == STRING) | (self.kinds == ESCAPED)
        return are_texts

    def at(self, rows: Ints) -> Values:
        """The values of these rows."""
        return Values(self.data, self.starts[rows], self.sizes[rows], self.kinds[rows], self.counts[rows])

    def at_or_absent(self, places: Ints) -> Values:
        """The values at these indexes; ABSENT for index -1."""
        if len(self.kinds) == 0:
            return nothing(self.data, len(places))
        return self.at(np.maximum(places, 0)).only(places >= 0)

    def only(self, chosen: Bools) -> Values:
        """The ``chosen`` values; the others become ABSENT."""
        sizes, kinds = np.where(chosen, self.sizes, -1), np.where(chosen, self.kinds, np.int8(ABSENT))
        return self._replace(sizes=sizes, kinds=kinds)

    def unless(self, chosen: Bools, other: Values) -> Values:
        """Replace the ``chosen`` values by those of ``other``, which must have the same data."""
        return Values(
            self.data,
            np.where(chosen, other.starts, self.starts),
            np.where(chosen, other.sizes, self.sizes),
            np.where(chosen, other.kinds, self.kinds),
            np.where(chosen, other.counts, self.counts),
        )


class Documents(NamedTuple):
    """The results of a scan: the spans of each selected value that some document has."""

    data: Bytes
    found: Ints
    """by slot, the index in ``values``; -1 if no document has the value"""
    values: Sequence[Values]
    intact: Bools

    def value(self, slot: int) -> Values:
        number = int(self.found[slot])
        return self.values[number] if number >= 0 else nothing(self.data, len(self.intact))

    def at(self, rows: Ints) -> Documents:
        """These rows of the documents."""
        return self._replace(values=[value.at(rows) for value in self.values], intact=self.intact[rows])

    def replaced(self, rows: Ints, other: Documents) -> Documents:
        """These documents, but at ``rows`` those of ``other``, from the same data and of the same slots."""
        places = np.full(len(self.intact), -1)
        places[rows] = np.arange(len(rows))
        chosen = places >= 0
        slots = np.flatnonzero((self.found >= 0) | (other.found >= 0))
        found = np.full(len(self.found), -1)
        found[slots] = np.arange(len(slots))
        joined = [self.value(slot).unless(chosen, other.value(slot).at_or_absent(places)) for slot in slots.tolist()]
        return Documents(self.data, found, joined, self.intact)

    def counts(self) -> Ints:
        """How many of the selected values each document has."""
        count = np.zeros(len(self.intact), np.int64)
        for value in self.values:
            count += value.kinds != ABSENT
        return count


def nothing(data: Bytes, rows: int) -> Values:
    """No value in any row."""
    zeros = np.zeros(rows, np.int64)
    return Values(data, zeros, zeros - 1, zeros.astype(np.int8), zeros)


def documents(
    data: Bytes,
    begins: npt.NDArray[np.integer[Any]],
    ends: npt.NDArray[np.integer[Any]],
    tree: Paths,
    nulls: bool = False,
) -> Documents:
    """Validate that each ``data[begin:end]`` is a JSON object, and locate the values of ``tree`` in it.

    With ``nulls``, a null has the kind NULL; otherwise it is ABSENT.
    """
    rows = len(begins)
    longest = int((ends - begins).max()) if rows else 0
    intact, room = empty(rows, np.bool_), min(tree.slots, _LIKELY)
    while True:
        starts, sizes, counts = (empty(room * rows, np.int64).reshape(room, rows) for _ in range(3))
        kinds, state = empty(room * rows, np.int8).reshape(room, rows), scratch(tree, longest)
        if scan_documents(data, begins, ends, tree, nulls, state, starts, sizes, kinds, counts, intact):
            break
        room = tree.slots  # rarely, and then the scan usually ended at the first document
    found = [Values(data, starts[k], sizes[k], kinds[k], counts[k]) for k in range(int(state.found[0]))]
    return Documents(data, state.columns, found, intact)


def bounds(source: Binary) -> tuple[Ints, Ints]:
    """Where the document of each row begins and ends. Confluent's wire format has a header before it: a zero byte and an id."""
    begins, ends = source.offsets[:-1].astype(np.int64), source.offsets[1:].astype(np.int64)
    long = ends - begins > _HEADER
    if not long.any():
        return begins, ends
    framed = long & (source.data[np.where(long, begins, 0)] == 0)
    if not framed.any():
        return begins, ends
    framed &= source.data[np.where(framed, begins + _HEADER, 0)] == ord("{")
    return begins + np.where(framed, _HEADER, 0), ends


def texts(values: Values) -> pa.Array:
    """STRING: the unescaped text of a string, the JSON of any other value; NULL if null or absent.

    The JSON is as written, except for escapes that are half a surrogate pair.
    """
    if not ((values.kinds == ESCAPED) | (values.kinds >= OBJECT)).any():
        sizes = np.where(values.kinds > NULL, values.sizes, -1)
        return gather(values.data, values.starts, sizes, pa.string())
    spans = values[:4]
    sizes = empty(len(values.kinds), np.int64)
    measure_texts(*spans, sizes)
    return build(sizes, lambda offsets, out: write_texts(*spans, offsets, out), pa.string())


def canonical_texts(values: Values) -> pa.Array:
    """STRING: JSON that does not depend on how a string was escaped; ``null`` if null or absent."""
    spans = values[:4]
    sizes = empty(len(values.kinds), np.int64)
    measure_canonical(*spans, sizes)
    return build(sizes, lambda offsets, out: write_canonical(*spans, offsets, out), pa.string())


def objects(values: Values) -> pa.Array:
    """STRING: the JSON of objects as written, half surrogate pairs as U+FFFD; NULL for anything else."""
    sizes = np.where(values.kinds == OBJECT, values.sizes, -1)
    return build(
        sizes, lambda offsets, out: write_objects(values.data, values.starts, sizes, offsets, out), pa.string()
    )


def integers(values: Values) -> tuple[Ints, Bools]:
    """The integers that fit into a BIGINT, and which rows have one."""
    numbers, valid = empty(len(values.kinds), np.int64), empty(len(values.kinds), np.bool_)
    read_integers(*values[:4], numbers, valid)
    return numbers, valid


def from_base64(text: pa.Array, padded: bool = False) -> pa.Array:
    """BINARY: the decoded Base64 of a STRING column; NULL if a text is not Base64, or not ``padded``."""
    source = binary_of(text)
    sizes = empty(source.rows, np.int64)
    measure_decoded(source.data, source.offsets, sizes)
    if padded:
        sizes[np.diff(source.offsets) % 4 != 0] = -1
    sizes_of_valid = sizes if source.valid is None else np.where(source.valid, sizes, -1)
    return build(
        sizes_of_valid,
        lambda offsets, out: write_decoded(source.data, source.offsets, sizes_of_valid, offsets, out),
        pa.binary(),
    )


def roots(
    data: Bytes, begins: npt.NDArray[np.integer[Any]], ends: npt.NDArray[np.integer[Any]], intact: Bools
) -> Values:
    """The root objects of documents; ABSENT if a document is not valid."""
    rows = len(begins)
    values = Values(data, empty(rows, np.int64), empty(rows, np.int64), empty(rows, np.int8), empty(rows, np.int64))
    list_roots(data, begins, ends, intact, *values[1:])
    return values


class Listed(NamedTuple):
    """The members of each row's container: those of row ``i`` are ``firsts[i]`` to ``firsts[i + 1]``."""

    data: Bytes
    firsts: npt.NDArray[np.int32]
    members: Members

    @property
    def keys(self) -> Values:
        m = self.members
        return Values(self.data, m.key_starts, m.key_sizes, m.key_kinds, m.key_sizes)

    @property
    def values(self) -> Values:
        m = self.members
        return Values(self.data, m.starts, m.sizes, m.kinds, m.sizes)

    @property
    def counted_values(self) -> Values:
        """The values; each container has its number of members."""
        counted = self.values._replace(counts=empty(len(self.members.kinds), np.int64))
        count_members(*counted)
        return counted


def members(objects: Values) -> Listed:
    """The members of objects; other values have none."""
    firsts = _firsts(objects, OBJECT)
    listed = Listed(objects.data, firsts, _room(int(firsts[-1]), int(firsts[-1])))
    list_members(*objects[:4], firsts, np.zeros(3, np.int64), listed.members)
    return listed


class Items(NamedTuple):
    """The items of arrays, in pieces of some thousand items, because the span of a short item takes more memory than its text."""

    arrays: Values
    firsts: npt.NDArray[np.int32]
    """the items of row ``i`` are ``firsts[i]`` to ``firsts[i + 1]``"""

    def pieces(self) -> Iterator[Values]:
        """All items in order, in at least one piece."""
        total, place = int(self.firsts[-1]), np.zeros(3, np.int64)
        while True:
            piece = _room(min(total - int(place[0]), _PIECE), 0)
            list_members(*self.arrays[:4], self.firsts, place, piece)
            yield Values(self.arrays.data, piece.starts, piece.sizes, piece.kinds, piece.sizes)
            if int(place[0]) == total:
                return

    def together(self) -> Values:
        """All items; each container has its number of members."""
        pieces = list(self.pieces())
        starts, sizes, kinds = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 2, 3))
        values = Values(self.arrays.data, starts, sizes, kinds, empty(int(self.firsts[-1]), np.int64))
        count_members(*values)
        return values


def items(arrays: Values) -> Items:
    """The items of arrays; other values have none."""
    return Items(arrays, _firsts(arrays, ARRAY))


def _firsts(containers: Values, kind: int) -> npt.NDArray[np.int32]:
    firsts = np.zeros(len(containers.kinds) + 1, np.int32)
    np.cumsum(np.where(containers.kinds == kind, containers.counts, 0), out=firsts[1:])
    return firsts


def _room(values: int, keys: int) -> Members:
    return Members(*_spans(keys), *_spans(values))


def _spans(n: int) -> tuple[Ints, Ints, npt.NDArray[np.int8]]:
    return empty(n, np.int64), empty(n, np.int64), empty(n, np.int8)


class Distinct(NamedTuple):
    """The distinct containers of a batch, by their bytes. Most messages share a few containers."""

    codes: Codes
    """the number of each row's container; -1 if the row has none"""
    rows: Ints
    """the first row with each container"""

    def spread(self, decoded: pa.Array) -> pa.Array:
        """The result of each row's container; NULL if the row has none."""
        if not len(decoded):
            return pa.nulls(len(self.codes), decoded.type)
        if len(self.codes) == len(decoded) and bool((self.codes == np.arange(len(decoded))).all()):
            return decoded
        return decoded.take(primitive(self.codes, self.codes >= 0))


def distinct(values: Values, kind: int = ARRAY) -> Distinct:
    """Find the distinct values of one kind, arrays or objects, by their bytes."""
    needed = values.kinds == kind
    if np.count_nonzero(needed) <= 1:  # nothing to compare, so do not copy the text
        return Distinct(np.where(needed, np.int32(0), np.int32(-1)), np.flatnonzero(needed))
    sizes = np.where(needed, values.sizes, -1)
    before = empty(len(sizes), np.int64)
    number_runs(values.data, values.starts, sizes, before)
    heads = np.flatnonzero(before == np.arange(len(before)))
    encoded = gather(values.data, values.starts[heads], sizes[heads], pa.binary()).dictionary_encode()
    of_heads = np.asarray(encoded.indices.fill_null(-1), np.int32)
    codes = np.empty(len(sizes), np.int32)
    codes[heads] = of_heads
    codes = codes[before]
    having = np.flatnonzero(codes >= 0)[::-1]
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[codes[having]] = having  # backwards: the first row is written last
    return Distinct(codes, rows)


def numbered(*names: pa.Array) -> tuple[list[Codes], int]:
    """Number the distinct names over all columns. Returns the numbers of each column, and how many there are."""
    encoded = pa.concat_arrays(list(names)).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)), np.int32)
    cuts = np.cumsum([len(column) for column in names])[:-1]
    return list(np.split(codes, cuts)), len(encoded.dictionary) + 1


class Ranges(NamedTuple):
    """Names by row: those of row ``i`` are ``names[firsts[i]:lasts[i]]``."""

    firsts: npt.NDArray[np.integer[Any]]
    lasts: npt.NDArray[np.integer[Any]]
    names: Codes


def last_places(among: Ranges, requested: Ranges, count: int) -> Ints:
    """The last index of each requested name among the names of its row; -1 if it is not there."""
    seen, place = np.full(count, -1, np.int64), empty(count, np.int64)
    places = empty(len(requested.names), np.int64)
    find_last(*among, *requested, seen, place, places)
    return places


def by_row(offsets: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
    """The first item of each row and the one after its last item, from Arrow's offsets."""
    return offsets[:-1], offsets[1:]
