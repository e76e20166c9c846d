"""What the data sources share: storage, options, plans of tasks, streams, and files that are whole or not there."""
