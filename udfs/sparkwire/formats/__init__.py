"""The wire formats: for each its grammar, its tables, the kernels that only it needs, its functions."""
