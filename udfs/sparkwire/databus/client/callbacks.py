"""Call the callbacks of all consumers for one dispatcher: calls, threads, and combined results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from sparkwire.base.printable import printable
from sparkwire.databus.client.consumer import CALLBACKS, Consumer, Registration, Result, check_callbacks, overrides
from sparkwire.databus.client.data_events import DataEvent, Page

_log = logging.getLogger("sparkwire.databus.client")

OnDataEvent = Callable[[DataEvent], Any]
Returned = TypeVar("Returned")


class Failure(NamedTuple):
    """The last callback that failed, and its error."""

    callback: str
    error: str


class Callbacks:
    """The callbacks of all registered consumers.

    A single consumer runs in the dispatcher's thread. Each member of a group has a thread, in which all its callbacks run. A
    barrier waits for all members. Callbacks that no consumer overrides cost nothing.
    """

    def __init__(self, registrations: Sequence[Registration]) -> None:
        self._registrations = registrations
        self._threads = ExitStack()
        self._executors: dict[int, ThreadPoolExecutor] = {}
        for registration in registrations:
            for member in registration.members:
                check_callbacks(member)
            for member in registration.members if len(registration.members) > 1 else ():
                executor = ThreadPoolExecutor(1, thread_name_prefix="databus-consumer")
                self._executors[id(member)] = self._threads.enter_context(executor)
        self.listeners = {name: list(self._overriding(name)) for name in CALLBACKS}
        """by callback, the consumers that override it; if none does, the callback succeeds"""
        self._listening: dict[str, list[list[Consumer]]] = {}
        self._logged: set[Failure] = set()
        self.failure: Failure | None = None

    def close(self) -> None:
        """Stop the members' threads."""
        self._threads.close()

    def _overriding(self, callback: str) -> Iterator[Consumer]:
        for registration in self._registrations:
            yield from (member for member in registration.members if overrides(member, callback))

    def call(self, callback: str, *args: Any) -> Result:
        """Call every consumer, with a barrier before and after; return the highest result."""
        members = self.listeners[callback]
        if len(members) == 1 and not self._executors:
            return self._result(members[0], callback, args)
        results = _all([self._submit(member, self._result, member, callback, args) for member in members])
        return max(results, default=Result.SUCCESS)

    def deliver(self, page: Page, first: int, last: int, source: str) -> int:
        """Call the subscribers with the data events from ``first`` to before ``last``. Return the first that failed, or ``last``.

        It passes no events after the first failure, but members of a group may have handled some already.
        """
        listening = self._listening.get(source)
        if listening is None:
            listening = self._listening[source] = self._subscribed(source)
        if not listening:
            return last
        if any(len(members) > 1 for members in listening):
            return self._share(listening, page, first, last)
        if len(listening) == 1:
            return self._deliver_to(listening[0][0], page, range(first, last), last)
        for row in range(first, last):
            failed = [self._deliver_to(member, page, range(row, row + 1), row + 1) == row for (member,) in listening]
            if any(failed):
                return row
        return last

    def _subscribed(self, source: str) -> list[list[Consumer]]:
        """The groups that get data events of this source, without groups that do not override `on_data_event`."""
        groups = [list(r.members) for r in self._registrations if r.sources is None or source in r.sources]
        return [group for group in groups if any(overrides(member, "on_data_event") for member in group)]

    def _share(self, listening: Sequence[Sequence[Consumer]], page: Page, first: int, last: int) -> int:
        """Share the events among the members of each group in turn, with a barrier at the end."""
        stopped: list[int] = []
        pending = [
            self._submit(member, self._deliver_to, member, page, range(first + k, last, len(group)), last, stopped)
            for group in listening
            for k, member in enumerate(group)
        ]
        return min(_all(pending))

    def _submit(self, consumer: Consumer, work: Callable[..., Returned], *args: Any) -> Returned | Future[Returned]:
        executor = self._executors.get(id(consumer))
        return work(*args) if executor is None else executor.submit(work, *args)

    def _deliver_to(
        self, consumer: Consumer, page: Page, rows: range, last: int, stopped: list[int] | None = None
    ) -> int:
        """Return the first row that failed, else ``last``. It stops early when ``stopped`` is not empty."""
        on_data_event: OnDataEvent = consumer.on_data_event
        row = last
        try:
            for row in rows:
                if stopped:
                    return last
                returned = on_data_event(DataEvent(page, row))
                if returned is not Result.SUCCESS and not self._checked("on_data_event", returned).is_success:
                    break
            else:
                return last
        except Exception as error:  # noqa: BLE001 - whatever a consumer raises is its result ERROR
            self._raised("on_data_event", error)
        if stopped is not None:
            stopped.append(row)
        return row

    def _result(self, consumer: Consumer, callback: str, args: tuple[Any, ...]) -> Result:
        try:
            returned = getattr(consumer, callback)(*args)
        except Exception as error:  # noqa: BLE001 - whatever a consumer raises is its result ERROR
            self._raised(callback, error)
            return Result.ERROR
        return Result.SUCCESS if returned is Result.SUCCESS else self._checked(callback, returned)

    def _checked(self, callback: str, returned: Any) -> Result:
        if not isinstance(returned, Result):
            self._failed(Failure(callback, f"returned {text_of(repr, returned)}, which is no Result"))
            return Result.ERROR
        if not returned.is_success:
            self._failed(Failure(callback, f"returned {returned.name}"))
        return returned

    def _raised(self, callback: str, error: Exception) -> None:
        self._failed(Failure(callback, f"{type(error).__name__}: {text_of(str, error)}"), error)

    def _failed(self, failure: Failure, error: Exception | None = None) -> None:
        self.failure = failure
        if failure not in self._logged:  # a retry that fails in the same way is not logged again
            self._logged.add(failure)
            _log.error("%s", printable(f"{failure.callback} failed: {failure.error}"), exc_info=error)


def text_of(text: Callable[[object], str], value: object) -> str:
    """The text of an object from a consumer's code, whose ``repr`` or ``str`` may raise, too."""
    try:
        return text(value)
    except Exception as error:  # noqa: BLE001 - the text must not hide the failure to report
        return f"(a {type(value).__name__} whose text fails with {type(error).__name__})"


def _all(pending: Sequence[Returned | Future[Returned]]) -> list[Returned]:
    """Wait for all, and return their results: the barrier."""
    return [returned.result() if isinstance(returned, Future) else returned for returned in pending]
