"""Training: one model for many patches, interrupted and resumed, on one device or many."""
