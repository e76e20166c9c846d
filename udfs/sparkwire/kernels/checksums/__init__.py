"""CRC-32 and CRC-32C: by carry-less multiplication where the processor has it, by tables elsewhere."""
