"""Functions over columns, conversions between Arrow and the kernels, and the common part of the data sources."""
