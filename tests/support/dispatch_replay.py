"""Replay scripted scenarios: ``python -m tests.support.dispatch_replay FILE`` prints each line of FILE with our results.

A line is a scenario in the format of `tests/data/databus/dispatch_traces.jsonl`: `config`, `rules` (the results of the scripted
consumers), `stages` (lists of chunks in Base64). Stage 0 is loaded before the dispatch, the others when the dispatcher is idle.
The output is the same line with our `readEvents`, `trace` and `final`; all other fields are unchanged.
"""

from __future__ import annotations

import base64
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from sparkwire.base.error_codes import BAD_MAGIC, OK, TRUNCATED
from sparkwire.databus.client.buffer import EventBuffer, ReadResponse, split
from sparkwire.databus.client.checkpoint import Checkpoint
from sparkwire.databus.client.consumer import CALLBACKS, Consumer, Registration, Result, Scn
from sparkwire.databus.client.data_events import DataEvent, Page, Source, pages
from sparkwire.databus.client.dispatcher import Dispatcher
from sparkwire.databus.client.run import schemas_of, sources_of
from sparkwire.databus.client.state import Settings, Status
from sparkwire.errors import DispatcherRetriesExhaustedError, PullerRetriesExhaustedError, ScnNotFoundError
from tests.support import DATA as DATA_FOLDER
from tests.support.java_avro import record_text

DATA: Final = DATA_FOLDER / "databus"
ERROR_NAMES: Final = {
    ScnNotFoundError: "ScnNotFoundException",
    PullerRetriesExhaustedError: "PullerRetriesExhaustedException",
    DispatcherRetriesExhaustedError: "DispatcherRetriesExhaustedException",
}
CORE: Final = "com.linkedin.databus.core."
SCHEMA_ERROR: Final = CORE + "DatabusRuntimeException"

Json = dict[str, Any]


@cache
def golden_sources() -> tuple[Source, ...]:
    """The sources of all scenarios, from the summary of the window stream."""
    with lzma.open(DATA / "window_stream.jsonl.xz", "rt", encoding="utf-8", newline="\n") as lines:
        summary = [json.loads(line) for line in lines][-1]
    reported = zip(summary["sourceIds"], summary["sourceNames"], summary["schemas"], strict=True)
    return tuple(Source.of(*source) for source in reported)


class Scripted(Consumer):
    """A consumer that returns results by rules, and records every call."""

    def __init__(self, number: int, rules: Sequence[Json], trace: list[Json]) -> None:
        self.number = number
        self.rules = [rule for rule in rules if rule["consumer"] in (None, number)]
        self.trace = trace
        self.calls: Counter[str] = Counter()
        self.schemas = {id: schema for source in golden_sources() for id, schema in source.schemas.items()}
        for name in CALLBACKS:
            words = name.split("_")
            setattr(self, name, partial(self.answer, words[0] + "".join(map(str.capitalize, words[1:]))))

    def answer(self, callback: str, *args: Any) -> Result:
        self.calls[callback] += 1
        call = self.calls[callback]
        reported = self.reported(callback, *args)
        action = action_of(self.rules, callback, call, reported.get("key"))
        self.trace.append({"consumer": self.number, "cb": callback, "call": call} | reported | {"returns": action})
        if action == "THROW":
            raise RuntimeError("scripted")
        answer: Any = None if action == "NULL" else Result[action]
        return answer  # type: ignore[no-any-return]

    def reported(self, callback: str, *args: Any) -> Json:
        """The arguments in the form of the trace."""
        if not args:
            return {}
        if callback == "onDataEvent":
            return self.event(args[0])
        if callback == "onError":
            return error(args[0])
        if isinstance(args[0], Scn):
            return {"scn": {"partition": args[0].partition, "sequence": int(args[0])}}
        record = json.loads(args[1])
        return {"source": args[0], "schema": f"{record['namespace']}.{record['name']}"}

    def event(self, event: DataEvent) -> Json:
        schema = self.schemas.get(event.schema_id or b"")
        decoded = SCHEMA_ERROR if schema is None else record_text(schema, event.value or b"")
        key = None if event.key_bytes is None else base64.b64encode(event.key_bytes).decode()
        shown = {"seq": event.sequence, "srcId": event.src_id, "key": event.key_long, "keyBytes": key}
        return shown | {"opcode": event.opcode, "decoded": decoded}


def error(error: Exception | None) -> Json:
    if error is None:
        return {"error": None, "cause": None}
    cause = None
    if error.args:
        cause = "java.lang.Throwable" + ("" if error.args[0] is None else f": {error.args[0]}")
    return {"error": CORE + next(name for kind, name in ERROR_NAMES.items() if isinstance(error, kind)), "cause": cause}


def action_of(rules: Iterable[Json], callback: str, call: int, key: Any = None) -> str:
    for rule in rules:
        if rule["cb"] == callback and rule["fromCall"] <= call <= rule["toCall"] and rule["key"] in (None, key):
            return str(rule["action"])
    return "SUCCESS"


def replay(config: Json, rules: Sequence[Json], stages: Iterable[Sequence[bytes]]) -> Json:
    """Our `readEvents`, `trace` and `final` of a scenario."""
    trace: list[Json] = []
    persisted: list[Checkpoint] = []
    attempts: list[Checkpoint] = []

    def persist(checkpoint: Checkpoint) -> None:
        attempts.append(checkpoint)
        ok = action_of(rules, "persist", len(attempts)) == "SUCCESS"
        trace.append({"persist": json.loads(str(checkpoint)), "call": len(attempts), "ok": ok})
        if not ok:
            raise OSError("scripted")
        persisted.append(checkpoint)

    names = config["subscriptions"] or [None] * config["consumers"]
    consumers = (Registration.of(Scripted(k, rules, trace), sources) for k, sources in enumerate(names))
    threshold = int(config["bufferSize"] * config["checkpointThresholdPct"] / 100.0)
    settings = Settings(threshold, config["dispatcherMaxRetryNum"], config["dispatcherRetryInitSleepMs"])
    sources = sources_of(golden_sources())
    dispatcher = Dispatcher(list(consumers), sources, settings, persist)
    buffer = EventBuffer(config["dropOldEvents"])
    counts: list[int | str] = []
    for stage, chunks in enumerate(stages):
        if stage:
            trace.append({"stage": stage})
        for page in load(buffer, chunks, counts, config["schemaIdCheck"]):
            dispatcher.feed(page)
        if not stage:
            dispatcher.start()
        dispatcher.run()
    if config["stopAtEnd"]:
        trace.append({"stop": "STOP_DISPATCH_EVENTS message"})
        dispatcher.stop()
    return {"readEvents": counts, "trace": trace, "final": final(dispatcher, persisted)}


def load(buffer: EventBuffer, chunks: Iterable[bytes], counts: list[int | str], check: bool) -> Iterator[Page]:
    for chunk in chunks:
        read = buffer.read(chunk)
        counts.append(read_events(chunk, read))
        yield from pages(read.events, read.columns, schemas_of(sources_of(golden_sources())), check=check)


def read_events(chunk: bytes, read: ReadResponse) -> int | str:
    """The result or exception of Databus's `readEvents`."""
    invalid = CORE + "InvalidEventException: "
    if read.missing_end is not None:
        events, columns, _ = split(chunk)
        page, at = Page(events, columns), sum(len(events[k].as_py()) for k in range(read.rows))
        event, missing = DataEvent(page, read.rows), read.missing_end
        seen = f"_lastWrittenSequence={missing.written} _seenEndOfPeriodScn={missing.window} key={event.key}"
        position = f"start:{at}, end:{len(chunk)}, pos:{at}, read:{read.rows}, skipped:{missing.skipped}"
        scns = f"lastSeenStgWin:{missing.window}, seq:-1, lastProcessedSeq: {missing.latest}"
        return f"{invalid}* {seen} _scnRegress=false readPos: {{{position}, {scns}}}"
    if read.error in (OK, TRUNCATED):
        return read.rows
    if read.error == BAD_MAGIC and read.rows == 0 and chunk[0] not in (0, 2):
        version = int.from_bytes(chunk[:1], signed=True)
        return f"{CORE}UnsupportedDbusEventVersionRuntimeException: Unsupported DbusEvent version {version}"
    return invalid + "null"


def final(dispatcher: Dispatcher, persisted: Sequence[Checkpoint]) -> Json:
    def body(checkpoint: Checkpoint | None) -> Json | None:
        return None if checkpoint is None else dict(json.loads(str(checkpoint)))

    return {
        "status": dispatcher.status.name,
        "state": dispatcher.state.name,
        "retriesNum": dispatcher.retries.number,
        "lastSuccessfulCheckpoint": body(dispatcher.checkpoint),
        "lastPersisted": body(persisted[-1] if persisted else None),
        "dispatcherThreadAlive": dispatcher.status is not Status.SHUTDOWN,
        "callbacksAfterShutdown": [],
    }


def replay_line(scenario: Mapping[str, Any]) -> Json:
    stages = [[base64.b64decode(chunk) for chunk in stage] for stage in scenario["stages"]]
    return dict(scenario) | replay(scenario["config"], scenario["rules"], stages)


def main(path: str) -> None:
    with Path(path).open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            print(json.dumps(replay_line(json.loads(line)), ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1])
