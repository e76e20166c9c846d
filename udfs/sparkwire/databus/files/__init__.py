"""The table `databus`: reads, follows and writes event files and their windows."""
