"""Built-in solvers: data for a first run, for tests and for honest comparisons."""

from overtone.solvers.active_matter import ActiveMatter
from overtone.solvers.base import Field, System
from overtone.solvers.gray_scott import GrayScott
from overtone.solvers.kolmogorov_flow import KolmogorovFlow
from overtone.solvers.kuramoto_sivashinsky import KuramotoSivashinsky
from overtone.solvers.rayleigh_benard import RayleighBenard
from overtone.solvers.shear_flow import ShearFlow
from overtone.solvers.supernova_explosion import SupernovaExplosion
from overtone.solvers.turbulence_gravity_cooling import TurbulenceGravityCooling
from overtone.solvers.turbulent_radiative_layer_2d import TurbulentRadiativeLayer2D

SYSTEMS: dict[str, type[System]] = {
    kind.name: kind
    for kind in (
        ShearFlow,
        RayleighBenard,
        ActiveMatter,
        TurbulentRadiativeLayer2D,
        SupernovaExplosion,
        TurbulenceGravityCooling,
        KolmogorovFlow,
        GrayScott,
        KuramotoSivashinsky,
    )
}
"""The systems that `overtone data generate` knows, by name."""

__all__ = [
    "SYSTEMS",
    "ActiveMatter",
    "Field",
    "GrayScott",
    "KolmogorovFlow",
    "KuramotoSivashinsky",
    "RayleighBenard",
    "ShearFlow",
    "SupernovaExplosion",
    "System",
    "TurbulenceGravityCooling",
    "TurbulentRadiativeLayer2D",
]
