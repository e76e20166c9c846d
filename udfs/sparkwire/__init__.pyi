from pathlib import Path

from sparkwire import avro as avro
from sparkwire import databus as databus
from sparkwire import datahub as datahub
from sparkwire import debezium as debezium
from sparkwire import errors as errors
from sparkwire import kafka as kafka
from sparkwire import registry as registry
from sparkwire import sql_functions as sql_functions
from sparkwire.catalogue import FUNCTIONS as FUNCTIONS
from sparkwire.catalogue.explanation import explain as explain
from sparkwire.catalogue.file_tables import read as read
from sparkwire.spark.changes.changes import changes as changes
from sparkwire.spark.changes.changes import changes_by_table as changes_by_table
from sparkwire.spark.changes.current import current as current
from sparkwire.spark.changes.merge import merge as merge
from sparkwire.spark.changes.merge import merged as merged
from sparkwire.spark.doctor import doctor as doctor
from sparkwire.spark.functions.unity import publish as publish
from sparkwire.spark.registration import register as register

__version__: str

def samples() -> Path: ...
