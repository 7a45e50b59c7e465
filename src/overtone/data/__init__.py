"""Datasets in The Well's HDF5 layout: read, write, check, describe and import them."""

from overtone.data.arrays import ArrayWindows
from overtone.data.batches import Items, collate, collate_mixed
from overtone.data.check import Finding, check
from overtone.data.header import Header
from overtone.data.layout import FieldSpec, Layout, ScalarSpec
from overtone.data.origins import from_arrays, from_files, from_xarray, import_arrays
from overtone.data.source import parse_fields
from overtone.data.stats import compute_stats, write_stats
from overtone.data.trajectories import Trajectories
from overtone.data.well import Place, WellFolder
from overtone.data.writer import Storage, WellWriter, write_well

__all__ = [
    "ArrayWindows",
    "FieldSpec",
    "Finding",
    "Header",
    "Items",
    "Layout",
    "Place",
    "ScalarSpec",
    "Storage",
    "Trajectories",
    "WellFolder",
    "WellWriter",
    "check",
    "collate",
    "collate_mixed",
    "compute_stats",
    "from_arrays",
    "from_files",
    "from_xarray",
    "import_arrays",
    "parse_fields",
    "write_stats",
    "write_well",
]
