"""What this installation is: its version, those of its packages, devices, threads, caches."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from overtone.files import cache_dir

__version__ = "0.2.0"


PACKAGES = ("numpy", "h5py", "safetensors", "matplotlib", "typer", "rich")


def gather() -> dict[str, str]:
    """Names and values for `overtone info`, in the order to print them."""
    return {**machine(), "cache": str(cache_dir())}


def machine() -> dict[str, str]:
    """What results depend on and may be published: versions, processor, threads."""
    threads = f"{torch.get_num_threads()} (between operations: {torch.get_num_interop_threads()})"
    return {
        "overtone": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,  # names the build, unlike the metadata of PyPI's wheels
        **{name: package_version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processor": processor_name(),
        "device": device_name(),
        "threads": threads,
    }


def processor_name() -> str:
    """Model of the CPU, and how many of its threads this machine has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.processor() or 'unknown'}, {os.cpu_count()} threads"


def package_version(name: str) -> str:
    """Version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def device_name() -> str:
    """The devices that torch can compute on."""
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return f"cuda: {', '.join(names)}"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"
