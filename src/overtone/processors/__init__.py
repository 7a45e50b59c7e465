"""Between tokens and tokens: transformers with full (`vit`) or axial spatial attention."""

from overtone.processors.transformer import SPACE_ATTENTION, TimeState, Transformer

PROCESSORS = tuple(SPACE_ATTENTION)

__all__ = ["PROCESSORS", "TimeState", "Transformer"]
