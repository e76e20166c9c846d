from sparkwire.spark.rows.datahub import columns as columns
from sparkwire.spark.rows.datahub import rows as rows
