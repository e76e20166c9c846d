"""Images of every form work with Spark's JSON functions."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from tests.support.datahub_cases import insert


def test_images_in_from_json_and_parse_json(spark: SparkSession) -> None:
    image = (
        '{ "id" : 9007199254740993, "d": 0.10000000000000000001, "s": "\\u00e9\\ud83d\\ude00 \\"q\\" \\\\ /\\n", "n": null,'
        ' "b": true, "half": "\\ud800", "twice": 1, "twic\\u0065": 2, "o": {"x": [1, 2]} }'
    )
    blob = b"\xef\xbb\xbf" + insert(image).encode()
    frame = spark.createDataFrame([(blob,)], "blob BINARY")
    schema = "id BIGINT, d DECIMAL(38, 20), s STRING, n STRING, b BOOLEAN, half STRING, twice INT, o STRING"
    row = frame.selectExpr(f"from_json(datahub_after(blob), '{schema}') AS o").selectExpr("o.*").first()
    assert row is not None
    assert (row["id"], str(row["d"]), row["s"]) == (9007199254740993, "0.10000000000000000001", 'é😀 "q" \\ /\n')
    assert (row["n"], row["b"], row["twice"], json.loads(row["o"])) == (None, True, 2, {"x": [1, 2]})
    parsed = frame.selectExpr("parse_json(datahub_after(blob)) AS v").selectExpr(
        "variant_get(v, '$.id', 'BIGINT')", "variant_get(v, '$.twice', 'INT')", "variant_get(v, '$.s', 'STRING')"
    )
    assert tuple(parsed.first() or ()) == (9007199254740993, 2, 'é😀 "q" \\ /\n')


def test_shard_key_equals_to_json(spark: SparkSession) -> None:
    text = 'a"\\/\b\f\n\r\t\u0001\u001f\u007fé😀'
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)
    frame = spark.createDataFrame([(insert(f'{{"id": "{escaped}"}}').encode(), text)], "blob BINARY, text STRING")
    row = frame.selectExpr("datahub_shard_key(blob) AS ours", "to_json(array(text)) AS sparks").first()
    assert row is not None
    assert row["ours"] == row["sparks"]
