"""Shared fixtures: small domains, small models, repeatable randomness."""

import gc
import os
from contextlib import contextmanager
from importlib import import_module

# Some virtual machines announce AMX and then trap its instructions, which bfloat16 would use.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# No test asks a real hub: a name that is mistyped in one must not reach the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from hypothesis import settings

import overtone as ot
from overtone.cli import app
from overtone.metrics.spectrum import wavenumber_norm
from overtone.models.flops import call_flops

# Fuzz tests are tried more often by benchmarks/faults.py.
EXAMPLES = int(os.environ.get("OVERTONE_EXAMPLES", "40"))
settings.register_profile("overtone", deadline=None, max_examples=EXAMPLES, derandomize=True)
settings.load_profile("overtone")
torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported stays: nothing of it is searched for garbage, now or during a test.

    Searching half a million objects again and again took a third of the time until the first test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _no_page_of_runs(monkeypatch):
    """Drawing takes longer than the runs of tests; those that are about it ask for it."""
    monkeypatch.setattr("overtone.train.follow.draw_page", lambda *_: None)


@pytest.fixture
def undrawn(monkeypatch):
    """Reports without their figures, which take long and have their tests; animations stay."""
    monkeypatch.setattr("overtone.report.html.drawings", lambda *_: ())


@pytest.fixture(scope="session", autouse=True)
def _operations_are_counted_once():
    """Many small runs share few models; counting takes nearly half of the time of such a run.

    What counts, `overtone.models.flops.call_flops`, is itself left as it is.
    """
    known = {}

    def counted(model, domain, patch, **options):
        weights = [(name, tuple(value.shape)) for name, value in model.state_dict().items()]
        told = repr(model), weights, getattr(model, "config", None), domain, patch, options
        if (key := (type(model), str(told))) not in known:
            known[key] = call_flops(model, domain, patch, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        for user in ("train.loop", "evaluate.candidates", "assess.cost"):
            patch.setattr(import_module(f"overtone.{user}"), "call_flops", counted)
        yield


@pytest.fixture(scope="session")
def make_domain():
    def make(shape=(32, 48), boundaries="periodic", fields=("a", "b"), dt=0.1, dt_range=None):
        extent = tuple(float(n) / 16 for n in shape)
        return ot.Domain(shape, extent, boundaries, fields, dt, dt_range)

    return make


@pytest.fixture(scope="session")
def make_model(make_domain):
    """A small model of full structure."""

    def make(domain=None, processor="vit", tokenizer="csm", patches=(4, 8, 16), **options):
        small = {"width": 24, "heads": 2, "blocks": 2, "mlp_dim": 32, "context": 3}
        return ot.build(
            processor,
            tokenizer=tokenizer,
            patches=patches,
            domain=domain or make_domain(),
            **(small | options),
        )

    return make


@pytest.fixture(scope="session")
def make_window():
    """Smooth-ish random frames that drift, so that neither std nor change is zero."""

    def make(domain, batch=2, frames=3, seed=0, dtype=torch.float32):
        random = torch.Generator().manual_seed(seed)
        shape = (batch, frames, len(domain.fields), *domain.shape)
        fields = torch.randn(shape, generator=random, dtype=dtype).cumsum(dim=1)
        return ot.Window(fields, domain)

    return make


@pytest.fixture(scope="session")
def red_noise():
    """Gaussian fields with power k^-slope and unit variance."""

    def make(num, shape, slope=3.0, seed=0):
        random = torch.Generator().manual_seed(seed)
        space = tuple(range(-len(shape), 0))
        scale = wavenumber_norm(shape).clamp(min=1 / max(shape)) ** (-slope / 2)
        noise = torch.randn(num, *shape, generator=random, dtype=torch.float64)
        field = torch.fft.ifftn(torch.fft.fftn(noise, dim=space) * scale, dim=space).real
        return field / field.std()

    return make


@pytest.fixture
def full_disk():
    """Let no file grow beyond a size, for as long as a block runs, as if the disk were full."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limited(size):
        before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))

    return limited


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in for the hub and what it was asked; nobody is logged in, the cache is empty."""
    library = pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import close_session

    from tests.hub_stand_in import serving

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    close_session()
    with serving() as server:
        settings = {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_CACHE": str(tmp_path / "cache"),
            "HF_TOKEN_PATH": str(tmp_path / "token"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, value in settings.items():
            monkeypatch.setattr(library.constants, name, value)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
        yield server.state
        close_session()


@pytest.fixture
def offline(monkeypatch):
    """Forbid huggingface_hub all connections from now on, as HF_HUB_OFFLINE=1 does."""

    def forbid():
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    return forbid


@pytest.fixture
def overtone(monkeypatch, capsys):
    """Run a command as it is typed; returns its exit code and all that it says."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["overtone", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            app.main()
        output = capsys.readouterr()
        return caught.value.code or 0, output.out + output.err

    return run
