"""Between fields and tokens: fixed patches, CSM (variable stride) and CKM (resized kernel)."""

from overtone.tokenizers.convolution import ConvTokenizer, DecoderRule
from overtone.tokenizers.fixed import FixedTokenizer
from overtone.tokenizers.kernel import KernelTokenizer
from overtone.tokenizers.stride import StrideTokenizer

TOKENIZERS: dict[str, type[ConvTokenizer]] = {
    "fixed": FixedTokenizer,
    "csm": StrideTokenizer,
    "ckm": KernelTokenizer,
}

__all__ = [
    "TOKENIZERS",
    "ConvTokenizer",
    "DecoderRule",
    "FixedTokenizer",
    "KernelTokenizer",
    "StrideTokenizer",
]
