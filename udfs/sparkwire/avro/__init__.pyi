from sparkwire.avro.registry import Registry as Registry
from sparkwire.avro.typed_values import to_python as to_python
from sparkwire.spark.rows.avro import decode as decode
from sparkwire.spark.rows.avro import decode_error as decode_error
from sparkwire.spark.rows.avro import encode as encode
from sparkwire.spark.rows.avro import register_function as register_function
from sparkwire.spark.rows.avro import rows as rows
from sparkwire.spark.rows.avro import rows_by_type as rows_by_type
