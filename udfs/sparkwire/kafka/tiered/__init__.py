"""Segments in object storage: manifests, chunks and the keys that decrypt them."""
