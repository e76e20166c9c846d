"""The kinds of registries. `Registry` creates them."""
