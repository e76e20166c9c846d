"""Every claim of speed, against its peer, in one run: `make bench`."""
