"""CRC-32 and CRC-32C, by carry-less multiplication if the processor supports it, else by tables."""
