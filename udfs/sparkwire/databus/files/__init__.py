"""The table `databus`: event files, their windows, read, followed and written."""
