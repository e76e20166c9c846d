"""Record sets of magic 2 as librdkafka produces them: written once more by the same version, into its mock cluster.

The records are those of the stored sets, each of which is one request. The mock cluster keeps sets as they come, but for the base
offset. Its producer ids are random ones: they, and the checksum over them, are put back to the stored ones.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from crc32c import crc32c

from tests.data.generators.comparison import Compared, first_of_each
from tests.support import kafka_cases as golden
from tests.support.oracles import kafka as oracle

VERSION = "2.16.0"
_TOPIC = "t"
_PATIENCE = 30  # [s]
_PRODUCER_ID = slice(43, 53)
"""in a batch, with its epoch"""


def make(place: Path) -> Iterator[Compared]:
    """Produce, and fetch what the cluster keeps; it is in ``place``."""
    version = confluent_kafka.libversion()[0]
    if version != VERSION:
        pytest.fail(f"could not get librdkafka {VERSION}: confluent-kafka has {version} with it", pytrace=False)
    logs = [log for log in golden.logs(("wire",)) if log.name.startswith("rdkafka/rdkafka_v2_")]
    differences = []
    for log in logs:
        made = _produced(log)
        (place / Path(log.name).name).write_bytes(b"".join(made))
        differences.append((log.name, _differing(log, made)))
    yield Compared(len(logs), "record sets of librdkafka written again", first_of_each(differences))


def _produced(log: golden.Log) -> list[bytes]:
    codec = log.name.removesuffix(".bin").rpartition("_")[2]
    is_transactional = any(batch["isTransactional"] for batch in log.batches)
    settings = {
        "test.mock.num.brokers": 1,
        "bootstrap.servers": "by the mock cluster",
        "compression.type": codec,
        "linger.ms": _PATIENCE * 1000,
        "log_level": 4,  # not that there is a mock cluster
        "enable.idempotence": "idempotent" in log.name or is_transactional,
    } | ({"transactional.id": "golden"} if is_transactional else {})
    producer = confluent_kafka.Producer(settings)
    if is_transactional:
        producer.init_transactions(_PATIENCE)
        producer.begin_transaction()
    for batch in log.batches:
        if batch["isControl"]:
            is_commit = batch["records"][0]["controlType"] == "COMMIT"
            (producer.commit_transaction if is_commit else producer.abort_transaction)(_PATIENCE)
            producer.begin_transaction()
            continue
        for record in oracle.records(log.data[batch["position"] : batch["position"] + batch["size"]]):
            headers = [(header["key"], header["value"]) for header in record["headers"]]
            content: dict[str, Any] = {"key": record["key"], "value": record["value"], "headers": headers}
            producer.produce(_TOPIC, partition=0, timestamp=record["timestamp_ms"], **content)
        assert producer.flush(_PATIENCE) == 0
    (broker,) = producer.list_topics(timeout=_PATIENCE).brokers.values()
    return list(_kept(broker.host, broker.port, len(log.batches)))


def _kept(host: str, port: int, count: int) -> Iterator[bytes]:
    """The batches that a broker has, by raw requests: a client gives no batch as it is."""
    offset = 0
    with socket.create_connection((host, port), timeout=_PATIENCE) as broker:
        while count > 0:
            header = struct.pack(">hhih", 1, 4, 1, -1)  # Fetch, version 4
            topic = struct.pack(">ih", 1, len(_TOPIC)) + _TOPIC.encode()
            partition = struct.pack(">iiqi", 1, 0, offset, 1 << 24)
            request = header + struct.pack(">iiiib", -1, 100, 1, 1 << 24, 0) + topic + partition
            broker.sendall(struct.pack(">i", len(request)) + request)
            answer = _take(broker, *struct.unpack(">i", _take(broker, 4)))
            fixed = ">iiih" + f"{len(_TOPIC)}s" + "iihqqi"
            *_, error, _, _, aborted = struct.unpack_from(fixed, answer)
            assert error == 0, f"Fetch at offset {offset}: error {error}"
            start = struct.calcsize(fixed) + 16 * max(aborted, 0) + 4
            for batch in oracle.batches(answer[start:]):
                yield answer[start + batch["position"] :][: batch["size"]]
                offset, count = batch["last_offset"] + 1, count - 1


def _take(broker: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += broker.recv(size - len(data)) or pytest.fail("the mock cluster has closed the connection")
    return data


def _differing(log: golden.Log, made: list[bytes]) -> Iterator[str]:
    for number, (batch, data) in enumerate(zip(log.batches, made, strict=True)):
        stored = log.data[batch["position"] : batch["position"] + batch["size"]]
        if batch["producerId"] != -1:
            data = _with_producer(data, stored)
        if data != stored:
            yield f"batch {number}: stored are {len(stored)} bytes, made were {len(data)}, not the same"


def _with_producer(data: bytes, stored: bytes) -> bytes:
    changed = bytearray(data)
    changed[_PRODUCER_ID] = stored[_PRODUCER_ID]
    if any(changed[17:21]):  # the mock cluster writes markers without a checksum
        changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)
