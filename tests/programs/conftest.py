"""One small export that several files look at."""

import pytest
import torch

import overtone as ot


@pytest.fixture(scope="session")
def small_model():
    """Of two patches, periodic along one axis, whose frames change much."""
    domain = ot.Domain((16, 22), (1.0, 1.375), ("periodic", "wall"), ("a", "b"), 0.1)
    torch.manual_seed(0)
    numbers = {"width": 8, "heads": 2, "blocks": 1, "mlp_dim": 16, "stage_dim": 8}
    model = ot.build(patches=(4, 8), domain=domain, context=3, layer_scale=1.0, **numbers)
    with torch.no_grad():
        model.tokenizer.decoders[-1].weight.mul_(10)  # pyright: ignore[reportCallIssue]
    return model


@pytest.fixture(scope="session")
def exported(small_model, tmp_path_factory):
    """The folder of its ONNX programs, one at a patch of one number and one of two."""
    folder = tmp_path_factory.mktemp("export") / "small"
    ot.export(small_model, folder, patches=[4, (8, 8)], units={"a": "kg"})
    return folder
