"""Everything that knows Spark: registration, column functions, readers. The only place that imports pyspark."""
