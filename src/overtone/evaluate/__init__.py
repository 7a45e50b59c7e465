"""Models x data x schedules -> results: errors, artifacts, physics and costs, as plain data."""

from overtone.evaluate.candidates import Candidate, Evaluable, load_candidate
from overtone.evaluate.fingerprint import fingerprint
from overtone.evaluate.predictions import write_predictions
from overtone.evaluate.run import evaluate
from overtone.evaluate.trajectories import Reading, Trajectories
from overtone.loading import load_model

__all__ = [
    "Candidate",
    "Evaluable",
    "Reading",
    "Trajectories",
    "evaluate",
    "fingerprint",
    "load_candidate",
    "load_model",
    "write_predictions",
]
