from sparkwire.spark.changes.debezium_rows import columns as columns
from sparkwire.spark.changes.debezium_rows import rows as rows
