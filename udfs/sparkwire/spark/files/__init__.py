"""The data sources of files: what reads, streams and writes them for Spark."""
