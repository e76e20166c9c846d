"""What a user writes: consumers with their callbacks, the results that these return, and registrations of consumers."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from sparkwire.base.printable import type_error
from sparkwire.databus.client.data_events import DataEvent


class Result(IntEnum):
    """The result of a callback. If several consumers return results, the highest counts.

    The first three differ only in `on_checkpoint`: the client stores the checkpoint unless a consumer returns SKIP_CHECKPOINT. An
    error has the same effect there. In all other callbacks, the first three mean success; ERROR and ERROR_FATAL both cause a
    rollback. A callback that raises, or returns anything that is not a `Result`, counts as ERROR.
    """

    SUCCESS = 0
    CHECKPOINT = 100
    SKIP_CHECKPOINT = 150
    ERROR = 200
    ERROR_FATAL = 300

    @property
    def is_success(self) -> bool:
        return self < Result.ERROR


class Scn(int):
    """A system change number for callbacks: an int with the physical partition that it comes from."""

    partition: int

    def __new__(cls, sequence: int, partition: int = 0) -> Scn:
        scn = super().__new__(cls, sequence)
        scn.partition = partition
        return scn


class Consumer:
    """The base class of Databus consumers: derive from it and override the callbacks that you need.

    A consumer gets these callbacks for a window::

        on_start_data_event_sequence(scn)
            on_start_source(source, schema)         each time the source changes: for A, B, A three times
                on_data_event(event) ...
            on_end_source(source, schema)
        on_end_data_event_sequence(scn)
        on_checkpoint(scn)                          the only callback of a window without events

    Every callback except `on_data_event` is a barrier: it begins after all earlier data events, and ends before the
    next callback begins. The members of a group share the data events between two barriers; every other callback goes to every
    member.

    A callback that returns ERROR or ERROR_FATAL, raises, or returns no `Result` causes a rollback. `on_rollback` gets the SCN of
    the last accepted checkpoint, and all later events follow again. Without an accepted checkpoint, `on_rollback` is not
    called. The result of `on_rollback` has no effect; an error of `on_checkpoint` counts as SKIP_CHECKPOINT. See `Result`.
    """

    def on_start_consumption(self) -> Result:
        """Called before the first event. An error ends the consumption before it begins."""
        return Result.SUCCESS

    def on_start_data_event_sequence(self, scn: int) -> Result:
        """Called when a window begins; ``scn`` is the SCN of its first event."""
        return Result.SUCCESS

    def on_start_source(self, source: str, schema: str | None) -> Result:
        """Called before data events of this source; ``schema`` is its latest schema as JSON text, None if unknown."""
        return Result.SUCCESS

    def on_data_event(self, event: DataEvent) -> Result:
        """Called for each data event."""
        return Result.SUCCESS

    def on_end_source(self, source: str, schema: str | None) -> Result:
        """Called when another source follows or the window ends."""
        return Result.SUCCESS

    def on_end_data_event_sequence(self, scn: int) -> Result:
        """Called when the window ends; ``scn`` is the SCN of its end-of-period event, which identifies the window."""
        return Result.SUCCESS

    def on_checkpoint(self, scn: int) -> Result:
        """Asks whether the client may checkpoint everything delivered so far. Also called in the middle of large windows, with
        the SCN of the window's start.
        """
        return Result.SUCCESS

    def on_rollback(self, scn: int) -> Result:
        """Undo everything after the checkpoint with this SCN, because it is delivered again. Open sources and windows are not
        closed.

        After an SCN regress, ``scn`` is the SCN of the next event: undo everything from there on.
        """
        return Result.SUCCESS

    def on_error(self, error: Exception | None) -> Result:
        """Called for an error of the stream: `ScnNotFoundError`, `PullerRetriesExhaustedError`, or None for an unknown error.
        Also called with `DispatcherRetriesExhaustedError` before the client gives up.
        """
        return Result.SUCCESS

    def on_stop_consumption(self) -> Result:
        """Called when consumption stops. Open sources and windows are not closed first."""
        return Result.SUCCESS

    def __repr__(self) -> str:
        overridden = [name for name in CALLBACKS if overrides(self, name)]
        return f"{type(self).__name__}({', '.join(overridden) or 'no callback overridden'})"


CALLBACKS = tuple(name for name in vars(Consumer) if name.startswith("on_"))
"""The names of the callbacks."""


def overrides(consumer: Consumer, callback: str) -> bool:
    """Whether the consumer overrides a callback. The callbacks of `Consumer` do nothing."""
    return getattr(type(consumer), callback) is not getattr(Consumer, callback) or callback in vars(consumer)


def check_callbacks(consumer: Consumer) -> None:
    """Check that every method with a name like a callback is a callback. A misspelled one would never run and would miss its
    events.

    TypeError names the first method that is not a callback.
    """
    for name in dir(consumer):
        as_in_java = re.sub("([A-Z])", r"_\1", name).lower()
        looks_so = name.startswith("on_") or (as_in_java != name and as_in_java in CALLBACKS)
        if looks_so and name not in CALLBACKS and callable(inspect.getattr_static(consumer, name)):
            near = difflib.get_close_matches(as_in_java, CALLBACKS, 1, 0)[0]
            raise type_error(f"{type(consumer).__name__}.{name} is no callback of a consumer: did you mean {near}?")


class Registration(NamedTuple):
    """The consumers of one registration: one consumer, or the members of a group."""

    members: Sequence[Consumer]
    """each data event goes to one member, every other callback to all members"""
    sources: frozenset[str] | None = None
    """names of the sources whose data events they get, None for all; they get the other callbacks for all sources"""

    @classmethod
    def of(cls, consumer: Consumer | Registration, sources: Iterable[str] | None = None) -> Registration:
        if isinstance(consumer, Registration):
            return consumer
        if not isinstance(consumer, Consumer):
            raise TypeError(f"dispatch takes consumers derived from sparkwire.databus.Consumer, got {consumer!r}")
        return cls((consumer,), None if sources is None else frozenset(sources))
