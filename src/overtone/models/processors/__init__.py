"""Between tokens and tokens: blocks that mix space by attention, full or local, or by spectra."""

from overtone.models.processors.transformer import PROCESSORS, Transformer

__all__ = ["PROCESSORS", "Transformer"]
