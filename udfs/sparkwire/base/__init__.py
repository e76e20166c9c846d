"""The foundation: error codes, SQL types, tables of wire layouts, and deprecation."""
