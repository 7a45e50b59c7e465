"""Models that are more than a tokenizer and a processor."""

from overtone.models.cvit import CViT, build_cvit
from overtone.models.cvit_architecture import CViTArchitecture

__all__ = ["CViT", "CViTArchitecture", "build_cvit"]
