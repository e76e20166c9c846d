"""Typed rows of messages as DataFrames: Avro, DataHub, Debezium."""
