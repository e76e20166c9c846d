"""The registries that there are, each made by `Registry` when it is called."""
