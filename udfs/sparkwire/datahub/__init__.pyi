from sparkwire.spark.changes.datahub_rows import columns as columns
from sparkwire.spark.changes.datahub_rows import rows as rows
