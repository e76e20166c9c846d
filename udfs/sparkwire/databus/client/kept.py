"""The events that a rollback may deliver again."""

from __future__ import annotations

from bisect import bisect_right

from sparkwire.databus.client.page import Page


class KeptPages:
    """Pages of events with two positions: the next event and the last checkpoint. It is Databus's buffer with its two iterators.

    Numbers of events count from the first event. It releases a page when both positions are after it.
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._firsts: list[int] = []  # the number of each page's first event
        self._fed = 0
        self.at = 0
        """the number of the next event"""
        self.saved: int | None = 0
        """number of the event to which a rollback returns, None if that event is no longer available"""

    def feed(self, page: Page) -> None:
        self._pages.append(page)
        self._firsts.append(self._fed)
        self._fed += page.rows

    @property
    def has_next(self) -> bool:
        return self.at < self._fed

    def page(self) -> tuple[int, Page]:
        """The page of the next event, and the number of the page's first event."""
        done = bisect_right(self._firsts, self.at if self.saved is None else min(self.saved, self.at)) - 1
        if done:
            del self._pages[:done], self._firsts[:done]
        k = bisect_right(self._firsts, self.at) - 1
        return self._firsts[k], self._pages[k]

    def save(self) -> None:
        """Note that a checkpoint covers everything before the next event."""
        self.saved = self.at

    def remove(self) -> None:
        """Release the events before the next event. A rollback to them is no longer possible."""
        if self.saved != self.at:
            self.saved = None

    def clear(self) -> None:
        self._pages.clear()
        self._firsts.clear()
        self._fed = self.at
