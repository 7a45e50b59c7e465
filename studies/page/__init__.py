"""Pages of prose whose tables and numbers are rendered from `results/*.json`."""
