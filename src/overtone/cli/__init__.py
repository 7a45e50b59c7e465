"""The command line: one file for each group of commands, and `app.py` that joins them."""
