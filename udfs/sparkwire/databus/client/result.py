"""The result of a callback."""

from __future__ import annotations

from enum import IntEnum


class Result(IntEnum):
    """The result of a callback; of several consumers' results the highest counts.

    Only `on_checkpoint` sees a difference between the first three: it stores the checkpoint, unless one of the consumers
    returns SKIP_CHECKPOINT (or an error, which means the same there). Anywhere else they are plain success, and ERROR and
    ERROR_FATAL roll back, in the same way. A callback that raises, or returns None or anything but a `Result`, has
    returned ERROR.
    """

    SUCCESS = 0
    CHECKPOINT = 100
    SKIP_CHECKPOINT = 150
    ERROR = 200
    ERROR_FATAL = 300

    @property
    def is_success(self) -> bool:
        return self < Result.ERROR
