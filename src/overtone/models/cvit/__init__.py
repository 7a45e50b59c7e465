"""Models that are more than a tokenizer and a processor."""

from overtone.models.cvit.architecture import CViTArchitecture
from overtone.models.cvit.model import CViT, build_cvit

__all__ = ["CViT", "CViTArchitecture", "build_cvit"]
