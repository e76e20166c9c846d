"""Change tables on Spark: `changes` makes them, `current` and `merge` read them."""
