from sparkwire.spark.rows.registered_rows import rows as rows
