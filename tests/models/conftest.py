"""Small models, one of each kind."""

import pytest
from torch import nn

import overtone as ot
from overtone.models.cvit import build_cvit

SMALL = {"width": 24, "heads": 2, "blocks": 1, "mlp_dim": 24, "latent_dim": 12,
         "decoder_width": 24, "decoder_heads": 2, "decoder_mlp_dim": 24}  # fmt: skip


def flexible(domain):
    parts = nn.Conv2d(6, 5, 8, 8), nn.ConvTranspose2d(5, 2, 8, 8)
    model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8))
    return ot.FlexibleStepper(model, domain=domain, context=3, predicts="change").eval()


def emulator(domain, time):
    return ot.build(
        "vit", domain=domain, patches=(4, 8), context=3, width=24, heads=2, blocks=1, mlp_dim=24,
        time=time,
    )  # fmt: skip


MAKERS = {
    "emulator": lambda domain: emulator(domain, "attend"),
    "folded emulator": lambda domain: emulator(domain, "fold"),
    "cvit": lambda domain: build_cvit(domain=domain, patches=(4, 8), context=3, **SMALL),
    "baseline": lambda domain: ot.baseline("unet", domain=domain, context=3, size="mini", width=4),
    "flexible": flexible,
}


@pytest.fixture(params=MAKERS)
def model(request, make_domain):
    return MAKERS[request.param](make_domain())
