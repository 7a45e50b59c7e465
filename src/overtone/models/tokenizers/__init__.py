"""Between fields and tokens: fixed patches, CSM (variable stride) and CKM (resized kernel)."""

from overtone.models.tokenizers.convolution import ConvTokenizer, DecoderRule
from overtone.models.tokenizers.modulation import FixedTokenizer, KernelTokenizer, StrideTokenizer

TOKENIZERS: dict[str, type[ConvTokenizer]] = {
    "fixed": FixedTokenizer,
    "csm": StrideTokenizer,
    "ckm": KernelTokenizer,
}
"""Tokenizers by the name that `ot.build` takes."""

__all__ = [
    "TOKENIZERS",
    "ConvTokenizer",
    "DecoderRule",
    "FixedTokenizer",
    "KernelTokenizer",
    "StrideTokenizer",
]
