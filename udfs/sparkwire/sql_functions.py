"""Every function as a column function, for DataFrame code.

    from sparkwire import sql_functions as W

    df.select(W.dbus_opcode("value"), W.dbus_sequence("value"))

A column is named or given as a Column, a constant as a Python value. They need no registration. The
functions come from the catalogue; ``sql_functions.pyi`` declares them to editors and type checkers.
"""

from __future__ import annotations

from sparkwire.catalogue import FUNCTIONS
from sparkwire.spark.columns import column_function

globals().update({name: column_function(function) for name, function in FUNCTIONS.items()})

__all__ = list(FUNCTIONS)
