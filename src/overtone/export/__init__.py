"""Programs that run a model without Overtone: ONNX, `torch.export` and AOTInductor."""

from overtone.export.run import export

__all__ = ["export"]
