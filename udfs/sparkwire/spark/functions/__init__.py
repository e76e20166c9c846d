"""Functions of SQL: the interfaces of Spark, functions of columns, Unity Catalog."""
