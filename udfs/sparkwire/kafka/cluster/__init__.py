"""Read internal topics and the metadata of a cluster, with Kafka's own message definitions."""
