"""What a model knows about its own error: estimates of a rollout, and plans for a budget."""

from overtone.assess.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]
