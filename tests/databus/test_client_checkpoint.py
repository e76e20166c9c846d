"""Checkpoints: texts of the Java client, parsed and written again, and its invariants."""

from __future__ import annotations

import json
import lzma
import pickle

import pytest

from sparkwire.databus.client.checkpoint import Checkpoint
from tests.support.dispatch_replay import DATA

ONLINE = (
    '{"tsNsecs":1400000000123456789,"prevScn":5000000000,"snapshot_offset":-1,"consumption_mode":"ONLINE_CONSUMPTION",'
    '"windowOffset":-1,"windowScn":5000000000}'
)
FLEXIBLE = (
    '{"tsNsecs":-1,"prevScn":-1,"snapshot_offset":-1,"consumption_mode":"ONLINE_CONSUMPTION",'
    '"windowOffset":-1,"windowScn":-1}'
)
PARTIAL = (
    '{"prevScn":900,"snapshot_offset":-1,"consumption_mode":"ONLINE_CONSUMPTION","windowOffset":5,"windowScn":1000}'
)
SNAPSHOT = (
    '{"prevScn":-1,"snapshot_offset":12,"consumption_mode":"BOOTSTRAP_SNAPSHOT","bootstrap_since_scn":100,'
    '"bootstrap_start_scn":150,"snapshot_source":"com.example.Person","windowOffset":-1,"windowScn":-1}'
)
CATCHUP = (
    '{"prevScn":-1,"snapshot_offset":-1,"consumption_mode":"BOOTSTRAP_CATCHUP","bootstrap_since_scn":100,'
    '"bootstrap_start_scn":150,"bootstrap_target_scn":200,"windowOffset":3,"windowScn":180}'
)


@pytest.mark.parametrize("text", [ONLINE, FLEXIBLE, PARTIAL, SNAPSHOT, CATCHUP])
def test_round_trip(text: str) -> None:
    checkpoint = Checkpoint.parse(text)
    assert str(checkpoint) == text
    assert Checkpoint.parse(str(checkpoint).encode()) == checkpoint
    assert pickle.loads(pickle.dumps(checkpoint)) == checkpoint
    assert hash(checkpoint) == hash(Checkpoint.parse(text))


def test_every_checkpoint_that_the_java_client_stored() -> None:
    with lzma.open(DATA / "dispatch_traces.jsonl.xz", "rt", encoding="utf-8") as lines:
        stored = [note["persist"] for line in lines for note in json.loads(line)["trace"] if "persist" in note]
    assert len(stored) > 150
    for body in stored:
        text = json.dumps(body, separators=(",", ":"))
        assert str(Checkpoint.parse(text)) == text
        assert Checkpoint.parse(text) == Checkpoint.online(body["windowScn"], body["tsNsecs"])


def test_fields() -> None:
    assert Checkpoint.parse(FLEXIBLE) == Checkpoint.flexible()
    assert Checkpoint.flexible().is_flexible
    assert not Checkpoint.online(5).is_flexible
    assert Checkpoint.parse(PARTIAL).is_partial
    assert not Checkpoint.parse(ONLINE).is_partial
    assert (Checkpoint.parse(PARTIAL).window_scn, Checkpoint.parse(PARTIAL).window_offset) == (1000, 5)
    assert Checkpoint.parse("{}").mode == "INIT"


@pytest.mark.parametrize(
    ("text", "change", "reason"),
    [
        (ONLINE, {"prevScn": 4}, "prevScn is not windowScn although the window is read to its end"),
        (ONLINE, {"windowScn": -2}, "windowScn is negative, and tsNsecs is set"),
        (ONLINE, {"windowOffset": -2}, "windowOffset is below -1"),
        (PARTIAL, {"prevScn": 1001}, "prevScn is beyond windowScn"),
        (SNAPSHOT, {"bootstrap_since_scn": -1}, "bootstrap_since_scn is not set"),
        (SNAPSHOT, {"bootstrap_catchup_source_index": 1}, "bootstrap_catchup_source_index is not 0 in the snapshot"),
        (SNAPSHOT, {"bootstrap_start_scn": -1}, "snapshot_offset is not 0 without bootstrap_start_scn"),
        (SNAPSHOT, {"bootstrap_snapshot_file_record_offset": 3}, "is set without a storage_cluster_name"),
        (CATCHUP, {"bootstrap_target_scn": 149}, "bootstrap_target_scn is below bootstrap_start_scn"),
        (CATCHUP, {"bootstrap_target_scn": -1}, "bootstrap_target_scn is not set"),
        (CATCHUP, {"snapshot_offset": 4}, "snapshot_offset is not -1 in the catch-up"),
        (CATCHUP, {"bootstrap_catchup_source_index": 1}, "is not within the sources of the snapshot"),
    ],
)
def test_invariants(text: str, change: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^not a valid checkpoint, .*{reason}: "):
        Checkpoint.parse(json.dumps(json.loads(text) | change))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "^Checkpoint.parse takes the JSON text of a checkpoint, got ''$"),
        ("[1]", "^Checkpoint.parse takes the JSON text of a checkpoint, got '\\[1\\]'$"),
        ('{"consumption_mode":"SOME"}', "^a checkpoint's consumption_mode is one of INIT, .*, got 'SOME'$"),
        ('{"windowScn":"7"}', "^a checkpoint's windowScn is a whole number, got '7'$"),
    ],
)
def test_invalid_checkpoints(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Checkpoint.parse(text)
