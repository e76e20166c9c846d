"""The table `kafka_log`: reads and follows segments on disk and in buckets."""
