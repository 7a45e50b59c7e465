"""What a model knows about its own error: estimates, plans for a budget, controllers."""
