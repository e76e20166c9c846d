"""The table `kafka_log`: segments on disk and in buckets, read, followed, checked and written."""
