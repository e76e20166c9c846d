"""The result of a callback."""

from __future__ import annotations

from enum import IntEnum


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
