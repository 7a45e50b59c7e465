"""All figures: each function draws one and returns it."""
