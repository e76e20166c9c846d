"""Functions over columns: the border between Arrow and the kernels, and what the data sources share."""
