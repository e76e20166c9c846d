"""Programs that make golden data again; each is a package here, with a function ``differences``."""
