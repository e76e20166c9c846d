"""What everything stands on: error codes, SQL types, tables of wire layouts, and names that go."""
