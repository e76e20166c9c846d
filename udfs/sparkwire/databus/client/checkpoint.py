"""Databus's checkpoint, the position of a consumer: from and to Databus's JSON, and as it follows from the events of a stream.

`Progress` differs from Databus on purpose: a checkpoint never includes the window in progress or a later window. The last
completed window may not be earlier than the window in progress: after an SCN regress, in a repeated window, or if a missing end
merged windows. Then the checkpoint is the SCN before the window's start, without a time. Databus stores the last completed window
and loses events after a restart.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NamedTuple, get_args

from sparkwire.base.printable import printable_json, value_error

Mode = Literal["INIT", "ONLINE_CONSUMPTION", "BOOTSTRAP_SNAPSHOT", "BOOTSTRAP_CATCHUP"]

UNKNOWN: Final = -1
"""An SCN, an offset or a time that is not set."""


class Checkpoint(NamedTuple):
    """The position of a consumer in one stream.

    ``str(checkpoint)`` is Databus's JSON, ``Checkpoint.parse(text)`` reads it. A checkpoint from `parse` or ``validated``
    satisfies Databus's invariants.
    """

    window_scn: int = UNKNOWN
    """SCN of the window; -1 in a flexible checkpoint, for which the relay chooses the start"""
    window_offset: int = UNKNOWN
    """number of data events read from that window, -1 if it is read to its end"""
    prev_scn: int = UNKNOWN
    """SCN of the previous window; if the window is read to its end, its own SCN"""
    timestamp_nanos: int | None = None
    """time of that window's end [ns since epoch], -1 for none, None if the JSON has no such field"""
    snapshot_offset: int = UNKNOWN
    mode: Mode = "INIT"
    bootstrap: tuple[tuple[str, Any], ...] = ()
    """the fields of a bootstrap checkpoint, with the names and the order of the JSON"""

    @classmethod
    def online(cls, scn: int, timestamp_nanos: int = UNKNOWN) -> Checkpoint:
        """The checkpoint after the window ``scn``, which is read to its end."""
        return cls(scn, UNKNOWN, scn, timestamp_nanos, UNKNOWN, "ONLINE_CONSUMPTION")

    @classmethod
    def flexible(cls) -> Checkpoint:
        """A checkpoint for which the relay chooses the start."""
        return cls(timestamp_nanos=UNKNOWN, mode="ONLINE_CONSUMPTION")

    @classmethod
    def parse(cls, text: str | bytes) -> Checkpoint:
        """Parse Databus's JSON.

        Raises
        ------
        ValueError
            if the text is not a checkpoint's JSON, or violates an invariant.
        """
        try:
            body = json.loads(text)
        except ValueError as problem:
            raise ValueError(f"Checkpoint.parse takes the JSON text of a checkpoint, got {text[:100]!r}") from problem
        if not isinstance(body, dict):
            raise ValueError(f"Checkpoint.parse takes the JSON text of a checkpoint, got {text[:100]!r}")
        mode = body.pop("consumption_mode", "INIT")
        if mode not in get_args(Mode):
            raise value_error(f"a checkpoint's consumption_mode is one of {', '.join(get_args(Mode))}, got {mode!r}")
        numbers = {name: _number(body.pop(key, None), key) for name, key in _NUMBERS.items()}
        timestamp = numbers.pop("timestamp_nanos")
        values = {name: UNKNOWN if number is None else number for name, number in numbers.items()}
        return cls(**values, timestamp_nanos=timestamp, mode=mode, bootstrap=tuple(body.items())).validated()

    def __str__(self) -> str:
        body: dict[str, Any] = {} if self.timestamp_nanos is None else {"tsNsecs": self.timestamp_nanos}
        body |= {"prevScn": self.prev_scn, "snapshot_offset": self.snapshot_offset, "consumption_mode": self.mode}
        body |= dict(self.bootstrap)
        body |= {"windowOffset": self.window_offset, "windowScn": self.window_scn}
        return printable_json(body, separators=(",", ":"))

    @property
    def is_flexible(self) -> bool:
        """Whether the relay chooses the start."""
        return self.mode == "ONLINE_CONSUMPTION" and self.window_scn < 0 and self._timestamp == UNKNOWN

    @property
    def is_partial(self) -> bool:
        """Whether the position is inside a window."""
        return self.window_offset >= 0

    @property
    def _timestamp(self) -> int:
        return UNKNOWN if self.timestamp_nanos is None else self.timestamp_nanos

    def validated(self) -> Checkpoint:
        """Check Databus's invariants and return the checkpoint itself.

        Raises
        ------
        ValueError
            if the checkpoint violates an invariant; the message names it.
        """
        broken = _broken(self)
        if broken is not None:
            raise value_error(f"not a valid checkpoint, {broken}: {self}")
        return self


_NUMBERS: Final = {
    "window_scn": "windowScn",
    "window_offset": "windowOffset",
    "prev_scn": "prevScn",
    "timestamp_nanos": "tsNsecs",
    "snapshot_offset": "snapshot_offset",
}


def _number(value: Any, key: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise value_error(f"a checkpoint's {key} is a whole number, got {value!r}")


def _broken(checkpoint: Checkpoint) -> str | None:
    """The first violated invariant, None if all hold."""
    if checkpoint.mode == "ONLINE_CONSUMPTION":
        return None if checkpoint.is_flexible else _broken_online(checkpoint)
    if checkpoint.mode == "INIT":
        return None
    return _broken_bootstrap(checkpoint)


def _broken_online(checkpoint: Checkpoint) -> str | None:
    scn, offset, before = checkpoint.window_scn, checkpoint.window_offset, checkpoint.prev_scn
    if scn < 0:
        return "windowScn is negative, and tsNsecs is set"
    if offset < UNKNOWN:
        return "windowOffset is below -1"
    if offset == UNKNOWN and before not in (UNKNOWN, scn):
        return "prevScn is not windowScn although the window is read to its end"
    return "prevScn is beyond windowScn" if before > scn else None


def _broken_bootstrap(checkpoint: Checkpoint) -> str | None:
    body = dict(checkpoint.bootstrap)

    def value_of(name: str, missing: int = UNKNOWN) -> int:
        number = _number(body.get(f"bootstrap_{name}"), f"bootstrap_{name}")
        return missing if number is None else number

    since, start, target = value_of("since_scn"), value_of("start_scn"), value_of("target_scn")
    snapshot, catchup = value_of("snapshot_source_index", 0), value_of("catchup_source_index", 0)
    if since == UNKNOWN:
        return "bootstrap_since_scn is not set"
    if value_of("snapshot_file_record_offset") != UNKNOWN and not body.get("storage_cluster_name"):
        return "bootstrap_snapshot_file_record_offset is set without a storage_cluster_name"
    if checkpoint.mode == "BOOTSTRAP_CATCHUP":
        return _first(
            (not 0 <= catchup <= snapshot, "bootstrap_catchup_source_index is not within the sources of the snapshot"),
            (start == UNKNOWN, "bootstrap_start_scn is not set"),
            (target == UNKNOWN, "bootstrap_target_scn is not set"),
            (checkpoint.snapshot_offset != UNKNOWN, "snapshot_offset is not -1 in the catch-up"),
            (target < start, "bootstrap_target_scn is below bootstrap_start_scn"),
        )
    return _first(
        (catchup != 0, "bootstrap_catchup_source_index is not 0 in the snapshot"),
        (start == UNKNOWN and snapshot != 0, "bootstrap_snapshot_source_index is set without bootstrap_start_scn"),
        (start == UNKNOWN and target != UNKNOWN, "bootstrap_target_scn is set without bootstrap_start_scn"),
        (start == UNKNOWN and checkpoint.snapshot_offset != 0, "snapshot_offset is not 0 without bootstrap_start_scn"),
    )


def _first(*rules: tuple[bool, str]) -> str | None:
    return next((reason for broken, reason in rules if broken), None)


_ANY: Final = 1 << 63
"""greater than every SCN"""


class Progress:
    """The last completed window, and the window in progress."""

    def __init__(self) -> None:
        self._window = -1  # the last completed window
        self._time = -1  # time of its end [ns]
        self._start = _ANY  # start of the window in progress
        self._went_back = False  # whether the stream went back since a window last began or ended

    def begin(self, scn: int) -> None:
        """Note that a window has begun with this SCN."""
        self._start, self._went_back = scn, False

    def end(self, scn: int, timestamp: int) -> None:
        """Note that a window has ended, or that an empty window was read."""
        self._window, self._time = scn, timestamp
        self._start, self._went_back = _ANY, False

    def end_empty(self, scn: int, timestamp: int) -> None:
        """Note a window without events. Its time counts only if it has one."""
        self.end(scn, timestamp if timestamp > 0 else self._time)

    def go_back(self) -> None:
        """Note that events from before the last completed window may follow."""
        self._went_back = True

    def checkpoint(self) -> Checkpoint:
        """The checkpoint after a window's end."""
        return Checkpoint.online(max(self._window, 0), self._time)

    def checkpoint_within(self) -> Checkpoint:
        """The checkpoint at a data event of the window in progress: the window before it."""
        return self._bounded(self._start - 1)

    def checkpoint_at(self, scn: int) -> Checkpoint:
        """The checkpoint at a checkpoint event with this SCN."""
        bound = min(self._start - 1, scn if self._went_back else _ANY)
        if self._window < 0 and scn <= bound:
            return Checkpoint.online(scn, self._time)
        return self._bounded(bound)

    def _bounded(self, bound: int) -> Checkpoint:
        if 0 <= self._window <= bound:
            return Checkpoint.online(self._window, self._time)
        return Checkpoint.online(max(bound, 0))


def is_online(payload: bytes | None) -> bool:
    """Whether a checkpoint event's payload is a checkpoint of online consumption, not of the bootstrap."""
    try:
        body = json.loads(payload or b"")
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("consumption_mode") == "ONLINE_CONSUMPTION"
