import torch

import overtone as ot
from overtone.ops.precision import full_precision


def test_products_stay_in_full_precision():
    x = torch.randn(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with full_precision(x):
            assert (x @ x).dtype == torch.float32


def test_meta_tensors_are_accepted(make_model, make_domain):
    """FLOPs are counted there."""
    with torch.device("meta"):
        model = make_model(tokenizer="ckm").train()
        fields = torch.empty(1, 3, 2, 32, 48)
    change, _ = model.predict_change(ot.Window(fields, make_domain()), 4)
    assert change.shape == fields.shape
