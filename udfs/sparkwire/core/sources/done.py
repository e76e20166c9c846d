"""Record which jobs with an id are done."""

from __future__ import annotations

import json

from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import Once, id_of


def is_done(folder: Folder, once: Once) -> bool:
    """Whether a job with this id, and with this number or a higher one, is done."""
    text = folder.read(_done_name(once))
    if text is None:
        return False
    try:
        return int(json.loads(text)["number"]) >= once[1]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            printable(
                f"{folder.shown(_done_name(once))} is corrupt ({error}) and does not show whether the job is done: check the "
                "target, and delete this file if the job is not done"
            )
        ) from None


def _done_name(once: Once) -> str:
    return f".sparkwire-{id_of(once[0])}.done"


def record_done(folder: Folder, once: Once, job: str, first: str) -> None:
    """Record that the job is done. For ``first``, see `Folder.write`."""
    folder.write_to_disk(_done_name(once), json.dumps({"number": once[1], "job": job}).encode(), first)


def recorded(folder: Folder, once: Once) -> bytes | None:
    """The record of this id."""
    return folder.read(_done_name(once))


def restore_record(folder: Folder, once: Once, was: bytes | None, first: str) -> None:
    """Restore the record from before a job that is undone."""
    if was is None:
        folder.remove(_done_name(once))
    elif recorded(folder, once) != was:
        folder.write_to_disk(_done_name(once), was, first)
