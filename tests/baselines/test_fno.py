"""The adapters onto neuraloperator: the library's own numbers, padding, resolution."""

import math
import subprocess
import sys

import pytest
import torch

import overtone as ot

pytest.importorskip("neuralop", reason="needs overtone[neuralop]", exc_type=ImportError)


@pytest.mark.parametrize(("name", "options"), [("fno", {}), ("tfno", {"rank": 0.5})])
def test_the_network_is_the_librarys_model(make_baseline, name, options):
    from neuralop import models  # pyright: ignore[reportMissingImports]

    model = make_baseline(name, modes=8, width=16, **options)
    kind = models.FNO if name == "fno" else models.TFNO
    library = kind(
        n_modes=(8, 8), in_channels=6, out_channels=2, hidden_channels=16,
        positional_embedding=None, **options,
    )  # fmt: skip
    for own, its in (("lifting", "lifting"), ("blocks", "fno_blocks"), ("projection",) * 2):
        getattr(library, its).load_state_dict(getattr(model, own).state_dict())
    x = torch.randn(2, 6, 16, 24)
    assert torch.equal(model.network(x), library(x))


def test_padding_is_the_librarys_on_the_axes_that_are_not_periodic(make_baseline, make_domain):
    from neuralop import models  # pyright: ignore[reportMissingImports]

    model = make_baseline("fno", make_domain((16, 24), ("periodic", "wall")), modes=8, width=16)
    library = models.FNO(
        n_modes=(8, 8), in_channels=6, out_channels=2, hidden_channels=16,
        positional_embedding=None, domain_padding=[0.0, 0.125],
    )  # fmt: skip
    for own, its in (("lifting", "lifting"), ("blocks", "fno_blocks"), ("projection",) * 2):
        getattr(library, its).load_state_dict(getattr(model, own).state_dict())
    x = torch.randn(2, 6, 16, 24)
    assert torch.allclose(model.network(x), library(x), atol=1e-6)
    assert not torch.allclose(model.network(x), make_unpadded(model)(x), atol=1e-3)


def make_unpadded(model):
    def network(x):
        padding, model.padding = model.padding, 0.0
        try:
            return model.network(x)
        finally:
            model.padding = padding

    return network


def band_limited(n, seed=0):
    """The same few waves, sampled at `j / n`, three frames of two fields."""
    random = torch.Generator().manual_seed(seed)
    x = torch.arange(n) / n * 2 * math.pi
    fields = torch.zeros(1, 3, 2, n, n)
    for _ in range(4):
        kx, ky = torch.randint(-2, 3, (2,), generator=random).tolist()
        phase = torch.rand(1, 3, 2, 1, 1, generator=random) * 2 * math.pi
        fields += torch.sin(kx * x[:, None] + ky * x + phase)
    return fields


def test_it_gives_the_same_function_on_every_grid(make_baseline, make_domain):
    """Up to the aliasing of its activations, which a finer grid makes smaller."""
    model = make_baseline("fno", make_domain((16, 16)), modes=8)
    with torch.no_grad():
        for parameter in model.lifting.parameters():
            parameter.mul_(6)  # untrained activations are so flat that nothing would alias

    def change(n):
        window = ot.Window(band_limited(n), make_domain((n, n)))
        return model.predict_change(window)[0][..., :: n // 16, :: n // 16]

    finest = change(128)
    errors = [(change(n) - finest).abs().max() / finest.abs().max() for n in (16, 32, 64)]
    assert errors[0] < 0.05
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


def test_more_modes_than_cells_are_refused(make_domain):
    with pytest.raises(ot.OvertoneError, match="keeps 12 modes.*modes of at most 8"):
        ot.baseline("fno", domain=make_domain((8, 32)), size="mini")


def test_the_librarys_import_leaves_the_warning_filters_alone():
    code = """
import warnings
import overtone as ot
before = list(warnings.filters)
domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("a",))
ot.baseline("fno", domain=domain, size="mini")
assert warnings.filters == before
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
