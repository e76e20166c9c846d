"""The base class of consumers, and their registration."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sparkwire.databus.client.data_event import DataEvent
from sparkwire.databus.client.result import Result


class Consumer:
    """The callbacks of a Databus consumer: derive from it and override what you need.

    A window, as a consumer sees it::

        on_start_data_event_sequence(scn)
            on_start_source(source, schema)         each time the source changes: A, B, A gives three pairs
                on_data_event(event) ...
            on_end_source(source, schema)
        on_end_data_event_sequence(scn)
        on_checkpoint(scn)                          of a window without events this alone

    Barriers: all callbacks but `on_data_event` wait until they are done, and until the data events before them are. The members
    of a group share the data events between two barriers; every other callback goes to every member.

    A callback that returns ERROR or ERROR_FATAL, raises, or returns no `Result` rolls back. `on_rollback` gets the scn of the
    last accepted checkpoint (no call without one), and everything after it comes again. The result of `on_rollback` has no
    effect; an error of `on_checkpoint` is SKIP_CHECKPOINT. See `Result`.
    """

    def on_start_consumption(self) -> Result:
        """Before the first event. An error ends the consumption before it begins."""
        return Result.SUCCESS

    def on_start_data_event_sequence(self, scn: int) -> Result:
        """A window begins; ``scn`` is its first event's."""
        return Result.SUCCESS

    def on_start_source(self, source: str, schema: str | None) -> Result:
        """Data events of this source follow; ``schema`` is the latest one of the source as JSON text, None if none is known."""
        return Result.SUCCESS

    def on_data_event(self, event: DataEvent) -> Result:
        """Called for each data event."""
        return Result.SUCCESS

    def on_end_source(self, source: str, schema: str | None) -> Result:
        """The source's data events end, for now."""
        return Result.SUCCESS

    def on_end_data_event_sequence(self, scn: int) -> Result:
        """The window ends; ``scn`` is the one to remember: that of its end-of-period event."""
        return Result.SUCCESS

    def on_checkpoint(self, scn: int) -> Result:
        """Asks whether the client may checkpoint everything delivered so far. In large windows also in the middle, with the scn
        of the start."""
        return Result.SUCCESS

    def on_rollback(self, scn: int) -> Result:
        """Undo what came after the checkpoint with this scn: it is delivered again. The open source and window are not ended.

        After an SCN regress ``scn`` is that of the next event: undo what came from there on.
        """
        return Result.SUCCESS

    def on_error(self, error: Exception | None) -> Result:
        """An error of the stream (`ScnNotFoundError`, `PullerRetriesExhaustedError`, None for an unknown one), or the last
        call before the client gives up (`DispatcherRetriesExhaustedError`)."""
        return Result.SUCCESS

    def on_stop_consumption(self) -> Result:
        """The end. An open source and window are not ended before it."""
        return Result.SUCCESS

    def __repr__(self) -> str:
        overridden = [name for name in CALLBACKS if overrides(self, name)]
        return f"{type(self).__name__}({', '.join(overridden) or 'no callback overridden'})"


CALLBACKS = tuple(name for name in vars(Consumer) if name.startswith("on_"))
"""The names of the callbacks."""


def overrides(consumer: Consumer, callback: str) -> bool:
    """Whether the consumer defines a callback: those inherited from `Consumer` do nothing."""
    return getattr(type(consumer), callback) is not getattr(Consumer, callback) or callback in vars(consumer)


def check_callbacks(consumer: Consumer) -> None:
    """Check that methods that look like callbacks are callbacks: a misspelt one would never run, and its events be lost.

    TypeError naming the first that is none.
    """
    for name in dir(consumer):
        as_in_java = re.sub("([A-Z])", r"_\1", name).lower()
        looks_so = name.startswith("on_") or (as_in_java != name and as_in_java in CALLBACKS)
        if looks_so and name not in CALLBACKS and callable(inspect.getattr_static(consumer, name)):
            near = difflib.get_close_matches(as_in_java, CALLBACKS, 1, 0)[0]
            raise TypeError(f"{type(consumer).__name__}.{name} is no callback of a consumer: is {near} meant?")


class Registration(NamedTuple):
    """Consumers of one registration: one, or the members of a group."""

    members: Sequence[Consumer]
    """each data event goes to one of them, every other callback to all"""
    sources: frozenset[str] | None = None
    """names of the sources whose data events they get, None for all; the other callbacks are about every source"""

    @classmethod
    def of(cls, consumer: Consumer | Registration, sources: Iterable[str] | None = None) -> Registration:
        if isinstance(consumer, Registration):
            return consumer
        if not isinstance(consumer, Consumer):
            raise TypeError(f"dispatch takes consumers derived from sparkwire.databus.Consumer, got {consumer!r}")
        return cls((consumer,), None if sources is None else frozenset(sources))
