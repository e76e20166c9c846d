"""Atomicity of jobs: every operation of the file system is, in turn, the last one or fails. Each partition stays complete."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources import job as jobs
from sparkwire.core.sources import job_file
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import Staging
from sparkwire.core.sources.job_file import SIDE
from sparkwire.core.sources.partition_versions import Change, Unfinished
from tests.support.faults import EXIT, Fault, Gone, faulty, in_child, quick_path

__all__ = ["quick_path"]

Files = dict[str, bytes]
"""the content of a partition for a reader"""


def job(
    top: Path,
    name: str,
    parts: Mapping[str, Files],
    overwrite: bool = False,
    once: tuple[str, int] | None = None,
    owner: job_file.Process | None = None,
) -> None:
    """Write files to partitions and commit them, like a sink."""
    folder = Folder(str(top))
    jobs.begin(folder, name, "", overwrite, owner)
    try:
        staging = Staging(folder, name, "0")
        changes = []
        for part, files in parts.items():
            staging.lock(part)
            placed = {}
            for file, data in files.items():
                staged, output = staging.create(file)
                with output:
                    output.write(data)
                placed[staged] = file
            changes.append(Change(part, placed, ()))
        staging.finish()

        def with_dropped() -> list[Change]:
            return [one._replace(dropped=folder.names(one.name) if overwrite else ()) for one in changes]

        jobs.commit(folder, name, with_dropped, once)
    except BaseException:
        jobs.abort(folder, name)
        raise


def place(top: Path, parts: Mapping[str, Files]) -> None:
    """Create partitions, before any job."""
    for part, files in parts.items():
        (top / part).mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (top / part / file).write_bytes(data)


def seen(top: Path, part: str) -> Files:
    paths = (top / part).iterdir() if (top / part).exists() else []
    return {file.name: file.read_bytes() for file in paths if file.is_file() and not file.name.startswith(".")}


DEAD = job_file.this_process()._replace(born="before")
"""a process that has ended, with the pid of this process"""
OLD: Mapping[str, Files] = {"a": {"1": b"old a", "2": b"old"}, "b": {"1": b"old b"}}
OVERWRITE: Mapping[str, Files] = {"a": {"1": b"new a"}, "b": {"1": b"new b", "3": b"new"}, "c": {"1": b"new c"}}
APPEND: Mapping[str, Files] = {"a": {"3": b"more a"}, "b": {"2": b"more b", "3": b"more"}, "c": {"1": b"new c"}}
WHOLE_OLD: Mapping[str, Files] = {"": {"1": b"old", "2": b"old"}}
WHOLE_NEW: Mapping[str, Files] = {"": {"1": b"new", "3": b"new"}}
WHOLE_MORE: Mapping[str, Files] = {"": {"3": b"more", "4": b"more"}}

CASES = {
    "overwrite": (OLD, OVERWRITE, True),
    "append": (OLD, APPEND, False),
    "overwrite files in the path": (WHOLE_OLD, WHOLE_NEW, True),
    "append files in the path": (WHOLE_OLD, WHOLE_MORE, False),
}


def after(old: Mapping[str, Files], new: Mapping[str, Files], overwrite: bool) -> dict[str, Files]:
    return {part: files if overwrite else {**old.get(part, {}), **files} for part, files in new.items()}


def check_one_version(top: Path, old: Mapping[str, Files], whole: Mapping[str, Files], step: int) -> bool:
    """Whether all partitions have the new version. Checks that a partition that is replaced in one step has only one version."""
    is_new = {part: seen(top, part) == files for part, files in whole.items()}
    for part in whole:
        if part:
            assert is_new[part] or seen(top, part) == old.get(part, {}), (step, part)
    return all(is_new.values())


def rejection(top: Path) -> str:
    """The error of a reader; empty if it can read."""
    try:
        jobs.check_unfinished(Folder(str(top)))
    except ValueError as rejected:
        return str(rejected)
    return ""


@pytest.mark.parametrize(
    ("case", "exchanges"), [*((case, True) for case in CASES), ("overwrite", False), ("append", False)]
)
def test_each_step_is_the_last_one(quick_path: Path, case: str, exchanges: bool) -> None:
    old, new, overwrite = CASES[case]
    whole, step, lost, done = after(old, new, overwrite), 0, 0, False
    while not done:
        top = quick_path / f"{step}"
        place(top, old)
        with faulty(top, Fault("gone", step, exchanges=exchanges, looks=False)):
            try:
                job(top, "second", new, overwrite, ("id", 1), DEAD)
                done = True
            except (Gone, Unfinished):
                pass
        if exchanges and "" not in whole:
            check_one_version(top, old, whole, step)
        rejected = rejection(top)
        if rejected:
            lost += 1
            assert "job second (since 20" in rejected
            assert "was interrupted while it replaced" in rejected
            assert rejected.endswith(f"Run: python -m sparkwire recover {top}")
        else:  # all partitions have one version
            assert check_one_version(top, old, whole, step) or {part: seen(top, part) for part in old} == old, step
        if step % 2:
            recover_and_die(top, step // 2)
            jobs.recover(str(top))
            all_new = check_one_version(top, old, whole, step)
            assert all_new or {part: seen(top, part) for part in old} == old, step
        # Run it again, as another job with the same id.
        job(top, "third", new, overwrite, ("id", 1))
        assert {part: seen(top, part) for part in whole} == whole, step
        left = {str(file.relative_to(top)) for file in top.rglob("*") if file.name.startswith(".") or SIDE in str(file)}
        assert left == {".sparkwire-id.done"}, step
        step += 1
    assert step > 30
    assert lost > 0


def recover_and_die(top: Path, step: int) -> None:
    """Run a recovery that is also interrupted."""
    with faulty(top, Fault("gone", step % 7, looks=False)), suppress(Gone, Unfinished):
        jobs.recover(str(top))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "fault",
    [
        Fault("EACCES"),
        Fault("EIO", after=True, looks=False),
        Fault("ENOSPC", lasting=True, looks=False),
        Fault("full", looks=False),
    ],
    ids=["EACCES", "EIO after its effect", "ENOSPC from there on", "full"],
)
def test_each_step_fails(quick_path: Path, case: str, fault: Fault) -> None:
    old, new, overwrite = CASES[case]
    whole, step, stuck = after(old, new, overwrite), 0, 0
    while True:
        top = quick_path / f"{step}"
        place(top, old)
        failed = None
        with faulty(top, fault._replace(at=step)) as done:
            try:
                job(top, "second", new, overwrite)
            except (OSError, ValueError) as error:
                failed = error
        all_new = all(seen(top, part) == files for part, files in whole.items())
        if isinstance(failed, ValueError):
            stuck += 1
            assert f"No data are lost. Remove the cause, then run: python -m sparkwire recover {top}" in str(failed)
            assert "while it replaced" in rejection(top) or {part: seen(top, part) for part in old} == old
            jobs.recover(str(top))
            all_new = check_one_version(top, old, whole, step)
            assert all_new or {part: seen(top, part) for part in old} == old
        elif failed is None:
            assert all_new, step  # leftover files are not a failure
            assert rejection(top) == "", step
        else:
            assert {part: seen(top, part) for part in old} == old, step
            assert seen(top, "c") == {}
        if failed is None and len(done) <= step:
            break
        jobs.recover(str(top), ["second"])  # its process, this one, is running
        assert not (top / SIDE).exists(), step
        if not all_new:
            job(top, "third", new, overwrite)
        assert {part: seen(top, part) for part in whole} == whole, step
        step += 1
    assert step > 30
    assert (stuck > 0) == (fault.lasting or fault.kind == "full")


def test_a_partition_has_one_writer(tmp_path: Path) -> None:
    job(tmp_path, "first", OLD)
    folder = Folder(str(tmp_path))
    jobs.begin(folder, "one", "", False)
    jobs.begin(folder, "two", "", False)
    jobs.lock(folder, "one", "a")
    jobs.lock(folder, "one", "a")
    jobs.lock(folder, "two", "b")
    with pytest.raises(
        ValueError, match=r"job one \(since 20.*, process \d+ on .*\) writes to .*/a: only one job at a time"
    ) as caught:
        jobs.lock(folder, "two", "a")
    assert str(caught.value).endswith(
        f"Wait for it or, if you know that its process has ended, run: python -m sparkwire recover {tmp_path} --job one"
    )
    jobs.abort(folder, "one")
    jobs.lock(folder, "two", "a")
    with pytest.raises(ValueError, match=r"job one in .* has ended, or was taken for dead: run it again"):
        jobs.lock(folder, "one", "c")
    jobs.abort(folder, "two")
    assert not (tmp_path / SIDE).exists()


def test_a_lock_of_the_dead_is_void(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))

    def killed() -> None:
        jobs.begin(folder, "one", "", False)
        jobs.lock(folder, "one", "a")
        os._exit(EXIT)

    assert in_child(killed) == EXIT
    assert (tmp_path / SIDE / "locks" / "a" / "one").exists()
    job(tmp_path, "two", OLD)
    assert {part: seen(tmp_path, part) for part in OLD} == OLD
    assert not (tmp_path / SIDE).exists()


@pytest.mark.parametrize("in_this_process", [True, False])
def test_a_job_that_could_not_delete_its_files_holds_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: bool
) -> None:
    """The file system becomes read-only during the job, and is writable again later. Its process, the JVM, runs on."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    top, jvm = tmp_path / "top", job_file.this_process()
    place(top, OLD)

    def fail() -> None:
        folder = Folder(str(top))
        jobs.begin(folder, "failed", "", False, jvm)
        Staging(folder, "failed", "0").lock("a")
        with faulty(top, Fault("EACCES", lasting=True, looks=False)):
            jobs.abort(folder, "failed")

    if in_this_process:
        fail()
    else:
        assert in_child(fail) == 0
    assert list((top / SIDE / "locks" / "a").iterdir())  # its lock is still there
    job(top, "next", APPEND, owner=jvm)
    assert seen(top, "a") == OLD["a"] | APPEND["a"]
    assert not (top / SIDE).exists()
    assert not list((tmp_path / "tmp").glob("*/*"))


def test_a_note_of_another_user_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job_file.note_end("job")
    monkeypatch.setattr(job_file, "_IN_THIS_PROCESS", set())
    assert job_file.has_ended("job")
    [directory] = tmp_path.iterdir()
    directory.chmod(0o777)
    assert not job_file.has_ended("job")
    job_file.forget("job")
    assert not list(directory.iterdir())


def test_a_note_follows_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a temporary directory, another user may put a link where the notes go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job_file.note_end("job")
    [directory] = tmp_path.iterdir()
    victim = tmp_path / "victim"
    directory.rename(victim)
    directory.symlink_to(victim)
    job_file.forget("job")
    job_file.note_end("other")
    assert [file.name for file in victim.iterdir()] == ["job"]
    assert f"the end of job other is known to process {os.getpid()} only" in caplog.text


def test_a_lock_of_another_machine_is_kept(tmp_path: Path) -> None:
    """This machine cannot check whether its process has ended."""
    folder = Folder(str(tmp_path))
    elsewhere = job_file.this_process()._replace(host="elsewhere", pid=1)
    jobs.begin(folder, "one", "", False, elsewhere)
    jobs.lock(folder, "one", "a")
    with pytest.raises(ValueError, match=r"job one \(since .*, process 1 on elsewhere\) writes to .*/a: "):
        job(tmp_path, "two", OLD)
    [line] = jobs.recover(str(tmp_path))
    assert line.endswith("is unchanged, because it may still run. If its process has ended, add --job one")
    [line] = jobs.recover(str(tmp_path), ["one"])
    assert line.endswith("had changed nothing: its files are deleted")
    job(tmp_path, "two", OLD)


def test_a_process_that_has_ended() -> None:
    here = job_file.this_process()
    assert not job_file.is_dead(here)
    assert job_file.is_dead(here._replace(born="1"))  # its pid was reused
    assert job_file.is_dead(here._replace(pid=2**22 + 1))
    assert not job_file.is_dead(here._replace(pid=None))
    assert not job_file.is_dead(here._replace(machine="another"))
    assert job_file.process_above("no such program").pid is None


def test_a_partition_that_has_changed_since(tmp_path: Path) -> None:
    """It may not change after the lock. If the job replaces data that it may have read, it may not change after the begin."""
    job(tmp_path, "first", OLD)
    folder = Folder(str(tmp_path))
    jobs.begin(folder, "one", "", True)
    job(tmp_path, "two", APPEND)
    with pytest.raises(ValueError, match="/a has changed since this job began: run it again, so that it reads the"):
        jobs.lock(folder, "one", "a")
    jobs.abort(folder, "one")
    jobs.begin(folder, "three", "", False)
    jobs.lock(folder, "three", "a")
    with (tmp_path / "a" / "1").open("ab") as file:
        file.write(b"a broker was here")
    with pytest.raises(
        ValueError, match="/a has changed since this job locked it: a broker or another program wrote to it"
    ):
        jobs.commit(folder, "three", lambda: [Change("a", {}, ())])
    assert seen(tmp_path, "a")["1"] == b"old aa broker was here"
    assert not (tmp_path / SIDE).exists()


def test_records_that_a_broker_has_written_meanwhile_stay(quick_path: Path) -> None:
    """Between the kill and the recovery, it appended to a partition that was not replaced yet."""
    top = quick_path / "top"
    job(quick_path / "trial", "first", OLD)
    job(top, "first", OLD)
    with faulty(quick_path, Fault()) as calls:
        job(quick_path / "trial", "second", OVERWRITE, True)

    def second() -> None:
        with faulty(top, Fault("killed", calls.index("exchange") + 1)):
            job(top, "second", OVERWRITE, True)

    assert in_child(second) == EXIT
    assert seen(top, "a") == OVERWRITE["a"]
    assert seen(top, "b") == OLD["b"]
    with (top / "b" / "1").open("ab") as file:
        file.write(b", and more")
    with pytest.raises(
        ValueError, match=r"/b has changed since job second .* was interrupted: run python -m sparkwire recover"
    ):
        job(top, "third", APPEND)
    [line] = jobs.recover(str(top))
    assert line.endswith("is finished, but for b, which changed meanwhile and stay as they are")
    assert seen(top, "a") == OVERWRITE["a"]
    assert seen(top, "b") == {"1": b"old b, and more"}
    assert seen(top, "c") == OVERWRITE["c"]
    assert not (top / SIDE).exists()


def test_a_job_with_an_id_is_done_once(tmp_path: Path) -> None:
    job(tmp_path, "first", {"a": {"1": b"1"}}, once=("query", 0))
    job(tmp_path, "again", {"a": {"2": b"1"}}, once=("query", 0))
    job(tmp_path, "next", {"a": {"3": b"2"}}, once=("query", 1))
    job(tmp_path, "other", {"a": {"4": b"3"}}, once=("other", 0))
    assert seen(tmp_path, "a") == {"1": b"1", "3": b"2", "4": b"3"}
    (tmp_path / ".sparkwire-query.done").write_text("{")
    with pytest.raises(
        ValueError, match=r"\.sparkwire-query\.done is corrupt \(.*\) and does not show whether the job"
    ):
        job(tmp_path, "again", {"a": {"2": b"1"}}, once=("query", 0))
    assert "2" not in seen(tmp_path, "a")


def test_a_job_that_is_undone_is_not_noted_as_done(quick_path: Path) -> None:
    """After any failing operation, the job succeeds when it runs again."""
    job(quick_path / "trial", "first", OLD, once=("id", 0))
    with faulty(quick_path, Fault(looks=False)) as calls:
        job(quick_path / "trial", "second", OVERWRITE, True, ("id", 1))
    for step in range(calls.index("exchange"), len(calls)):
        top = quick_path / f"{step}"
        job(top, "first", OLD, once=("id", 0))
        with faulty(top, Fault("EIO", step, looks=False)):
            try:
                job(top, "second", OVERWRITE, True, ("id", 1))
            except OSError:
                failed = True
            else:
                failed = False
        if failed:
            assert {part: seen(top, part) for part in OLD} == OLD, step
        job(top, "third", OVERWRITE, True, ("id", 1))
        assert {part: seen(top, part) for part in OVERWRITE} == OVERWRITE, step
        job(top, "late", {"a": {"9": b""}}, once=("id", 0))
        assert "9" not in seen(top, "a")


def files_of(top: Path) -> dict[str, bytes]:
    return {str(file.relative_to(top)): file.read_bytes() for file in sorted(top.rglob("*")) if file.is_file()}


def write_job_file(top: Path, **changed: Any) -> None:
    """Write the file of a dead job that had decided."""
    (top / SIDE / "evil" / "new" / "t-0").mkdir(parents=True)
    (top / SIDE / "evil" / "0-0.log").write_text("staged")
    said = {
        "job": "evil", "since": "now", "data": "", "seen": None, "once": None,
        "owner": job_file.this_process()._replace(born="gone")._asdict(),
        "plan": {"swaps": {}, "moves": {}, "dropped": []},
    } | changed  # fmt: skip
    (top / SIDE / "evil" / "job.json").write_text(json.dumps(said))


@pytest.mark.parametrize(
    "plan",
    [
        {"swaps": {"../victim": None}},
        {"swaps": {"t-0/../../victim": None}},
        {"swaps": {"/tmp": None}},
        {"swaps": {"": None}},
        {"swaps": {"link": {}}},
        {"swaps": {SIDE: {}}},
        {"moves": {f"{SIDE}/evil/0-0.log": "t-0/../../victim"}},
        {"moves": {f"{SIDE}/evil/0-0.log": "/victim"}},
        {"moves": {f"{SIDE}/evil/0-0.log": "link/file"}},
        {"moves": {f"{SIDE}/evil/0-0.log": "t-0/deep/er"}},
        {"moves": {"t-0/mine": "t-0/other"}},
        {"moves": {f"{SIDE}/evil/../../../victim/file": "t-0/other"}},
        {"dropped": ["t-0/../../victim/file"]},
        {"dropped": ["link/file"]},
        {"dropped": ["t-0/\0"]},
        {"dropped": "t"},
        {"swaps": []},
        {"swaps": {"t-0": {"x": "y"}}},
    ],
)  # fmt: skip
def test_no_name_leads_outside(tmp_path: Path, plan: dict[str, Any]) -> None:
    top, victim = tmp_path / "top", tmp_path / "victim"
    for folder in (top / "t-0", victim):
        folder.mkdir(parents=True)
        (folder / "file").write_text("mine")
    (top / "link").symlink_to(victim)
    write_job_file(top, plan={"swaps": {}, "moves": {}, "dropped": []} | plan)
    before = files_of(tmp_path)
    for attempt in (lambda: jobs.recover(str(top)), lambda: job(top, "next", {"a": {"1": b""}})):
        with pytest.raises(
            ValueError, match=r"evil/job\.json is corrupt \(.*\), so that the state of the job is unknown"
        ):
            attempt()
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"job": "evil"}'])
def test_a_corrupt_job_file_gives_a_clear_error(tmp_path: Path, text: bytes) -> None:
    write_job_file(tmp_path)
    (tmp_path / SIDE / "evil" / "job.json").write_bytes(text)
    for attempt in (
        jobs.recover,
        lambda path: jobs.check_unfinished(Folder(path)),
        lambda path: job(Path(path), "x", OLD),
    ):
        with pytest.raises(ValueError, match=r"evil/job\.json is corrupt"):
            attempt(str(tmp_path))


@pytest.mark.parametrize("at", [SIDE, f"{SIDE}/locks", f"{SIDE}/evil", f"{SIDE}/evil/new", "t-0"])
def test_links_are_not_followed(tmp_path: Path, at: str) -> None:
    top, victim = tmp_path / "top", tmp_path / "victim"
    write_job_file(top, plan={"swaps": {"t-0": {}}, "moves": {}, "dropped": []})
    (top / SIDE / "locks" / "t-0").mkdir(parents=True)
    (top / "t-0").mkdir()
    (top / at).rename(victim)
    (top / at).symlink_to(victim)
    (victim / "evil").mkdir(exist_ok=True)
    (victim / "mine").write_text("mine")
    before = files_of(victim)
    with pytest.raises(ValueError, match=r"is a symbolic link|is corrupt|does not exist, although"):
        jobs.recover(str(top))
    assert files_of(victim) == before


def test_a_pipe_instead_of_a_file_is_an_error(tmp_path: Path) -> None:
    """To read it would never end."""
    os.mkfifo(tmp_path / "job.json")
    with pytest.raises(FileNotFoundError, match=r"job\.json is no regular file: remove it"):
        Folder(str(tmp_path)).read("job.json")
