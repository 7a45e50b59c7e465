"""A page in the browser in which a model runs: what it shows, its server, and its recording.

Imported by `overtone view` alone; the server needs the extra `viewer`, a recording does not.
"""
