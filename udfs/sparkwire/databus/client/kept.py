"""The events that a rollback may need again."""

from __future__ import annotations

from bisect import bisect_right

from sparkwire.databus.client.page import Page


class KeptPages:
    """Pages of events with a place in them: Databus's buffer with its two iterators.

    Numbers of events count from the first event. They are let go once both the next event and the place of the last
    checkpoint are past them.
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._firsts: list[int] = []  # the number of the first event of each
        self._fed = 0
        self.at = 0
        """the number of the next event"""
        self.saved: int | None = 0
        """where a rollback goes, None where those events are gone"""

    def feed(self, page: Page) -> None:
        self._pages.append(page)
        self._firsts.append(self._fed)
        self._fed += page.rows

    @property
    def has_next(self) -> bool:
        return self.at < self._fed

    def page(self) -> tuple[int, Page]:
        """The page of the next event, and the number of its first."""
        done = bisect_right(self._firsts, self.at if self.saved is None else min(self.saved, self.at)) - 1
        if done:
            del self._pages[:done], self._firsts[:done]
        k = bisect_right(self._firsts, self.at) - 1
        return self._firsts[k], self._pages[k]

    def save(self) -> None:
        """A checkpoint covers everything up to here."""
        self.saved = self.at

    def remove(self) -> None:
        """Forget the events up to here: a rollback past them is no longer possible."""
        if self.saved != self.at:
            self.saved = None

    def clear(self) -> None:
        self._pages.clear()
        self._firsts.clear()
        self._fed = self.at
