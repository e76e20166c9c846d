"""The common part of the data sources: storage, options, task plans, streams, and atomic writes of files."""
