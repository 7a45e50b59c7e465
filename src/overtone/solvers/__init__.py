"""Built-in solvers: data for a first run, for tests and for honest comparisons."""

from overtone.solvers.base import Field, System
from overtone.solvers.shear_flow import ShearFlow

__all__ = ["Field", "ShearFlow", "System"]
