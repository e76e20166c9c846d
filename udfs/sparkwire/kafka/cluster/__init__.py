"""What a cluster stores about itself: internal topics and metadata, by Kafka's own message definitions."""
