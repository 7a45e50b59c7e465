"""Programs that run a model without Overtone: ONNX, `torch.export` and AOTInductor.

`ot.export` is the function `run.export`. The room has another name than the function: a package
`overtone.export` would take its place as soon as anyone imported something of it.
"""
