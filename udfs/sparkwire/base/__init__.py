"""The foundation: error codes, SQL types, and tables of wire layouts."""
