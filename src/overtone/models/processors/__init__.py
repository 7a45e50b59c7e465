"""Between tokens and tokens: blocks that mix space by attention, full or local, or by spectra."""

from overtone.models.processors.transformer import PROCESSORS, TimeState, Transformer

__all__ = ["PROCESSORS", "TimeState", "Transformer"]
