"""A job's files get their names all or none, whatever is interrupted: each step is, in turn, the last one that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkwire.core.sources.staging import Folder, JobChange, Staging, discard_job, finish

STEPS = ("create", "move", "remove")


class Killed(BaseException):
    """What a process that is killed does not catch either."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A folder's changes, of which the one numbered ``step`` and those after it do not happen."""
    done: list[str] = []

    def limited(name: str, method: Callable[..., object]) -> Callable[..., object]:
        def change(self: Folder, *arguments: str) -> object:
            if len(done) >= step:
                raise Killed
            done.append(name)
            return method(self, *arguments)

        return change

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(Folder, name, limited(name, getattr(Folder, name)))
        yield done


def job(
    folder: Folder, name: str, values: dict[str, bytes], overwrite: bool, stream: tuple[str, int] | None = None
) -> None:
    """Write files and finish, as a sink does."""
    staging = Staging(folder, f"{name}-0")
    named = {}
    for path, data in values.items():
        staged, output = staging.create("p", path, lambda own, mark: f"{own}.{mark}.deleted")
        with output:
            output.write(data)
        named[staged] = f"p/{path}"

    def change() -> JobChange:
        there = [file for file in folder.names("p") if not file.endswith(".deleted")]
        if not overwrite and set(there) & set(values):
            raise ValueError("they are there")
        return JobChange(named, {f"p/{file}": f"p/{file}.{name}-r.deleted" for file in there} if overwrite else {})

    finish(folder, name, stream, ["p"], change)


def files(top: Path) -> dict[str, bytes]:
    """What a reader sees."""
    return {
        file.name: file.read_bytes() for file in top.rglob("*") if file.is_file() and not file.name.endswith(".deleted")
    }


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("stream", [None, ("query", 1)])
def test_each_step_is_the_last_one(
    tmp_path: Path, overwrite: bool, stream: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = {"a": b"old", "b": b"old"}, {"c": b"new", "d": b"new"} | ({"a": b"new"} if overwrite else {})
    after = new if overwrite else old | new
    for step in range(100):
        top = tmp_path / f"{step}"
        folder = Folder(str(top))
        job(folder, "first", old, False, stream and ("query", 0))
        interrupted = False
        with killed_at(step, monkeypatch):
            try:
                job(folder, "second", new, overwrite, stream)
            except Killed:
                interrupted = True
        assert all(data in (b"old", b"new") for name, data in files(top).items() if "journal" not in name)
        # The job is tried again, as another one; where all but the last clean-up was done, a stream knows that.
        is_done = {name: data for name, data in files(top).items() if "journal" not in name} == after and not any(
            b"named" in data for data in files(top).values()
        )
        if not (is_done and not overwrite and stream is None):
            job(folder, "third", new, overwrite, stream)
        assert {name: data for name, data in files(top).items() if "journal" not in name} == after, step
        if not interrupted:
            break
    assert step > 6
    assert not [file for file in top.rglob("*") if file.name.endswith((".tmp", ".deleted"))]


def test_what_is_refused_leaves_nothing(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    job(folder, "first", {"a": b"1"}, False)
    with pytest.raises(ValueError, match="they are there"):
        job(folder, "second", {"a": b"2", "b": b"2"}, False)
    assert files(tmp_path) == {"a": b"1"}
    assert folder.tree() == ["p/a"]


def test_a_batch_of_a_stream_is_written_once(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    job(folder, "first", {"a": b"1"}, False, ("query", 0))
    job(folder, "again", {"b": b"1"}, False, ("query", 0))
    job(folder, "next", {"c": b"2"}, False, ("query", 1))
    assert sorted(name for name in files(tmp_path) if "journal" not in name) == ["a", "c"]


def test_a_job_that_fails_is_swept(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    for name in ("one", "two"):
        staging = Staging(folder, f"{name}-7")
        _, output = staging.create("p", "a", lambda own, mark: f"{own}.{mark}.deleted")
        output.close()
    discard_job(folder, "one")
    assert [name.split(".")[1] for name in folder.tree()] == ["two-7-0"]
    staging.discard()
    assert folder.tree() == []


def test_a_journal_of_other_directories_is_left(tmp_path: Path) -> None:
    """Another job may be at work there."""
    folder = Folder(str(tmp_path))
    folder.make("")
    folder.write(".sparkwire-other.journal", b'{"named": {"q/x": "q/y"}, "replaced": {}}')
    job(folder, "first", {"a": b"1"}, False)
    assert folder.names() == [".sparkwire-other.journal"]
