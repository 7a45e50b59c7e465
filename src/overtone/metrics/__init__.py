"""How far a prediction is from the truth."""

from overtone.metrics.pointwise import vrmse

__all__ = ["vrmse"]
