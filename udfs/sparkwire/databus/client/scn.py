"""A sequence number of a stream."""

from __future__ import annotations


class Scn(int):
    """A system change number as callbacks get it: an int that knows which physical partition gave it."""

    partition: int

    def __new__(cls, sequence: int, partition: int = 0) -> Scn:
        scn = super().__new__(cls, sequence)
        scn.partition = partition
        return scn
