"""The SCN that callbacks get: a sequence number of a stream."""

from __future__ import annotations


class Scn(int):
    """A system change number for callbacks: an int with the physical partition that it comes from."""

    partition: int

    def __new__(cls, sequence: int, partition: int = 0) -> Scn:
        scn = super().__new__(cls, sequence)
        scn.partition = partition
        return scn
