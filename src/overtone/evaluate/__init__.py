"""Models x data x schedules -> results: errors, artifacts, physics and costs, as plain data."""

from overtone.evaluate.candidates import Candidate, Evaluable, load_candidate
from overtone.evaluate.predictions import Predictions, write_predictions
from overtone.evaluate.run import evaluate
from overtone.evaluate.trajectories import Reading, Trajectories

__all__ = [
    "Candidate",
    "Evaluable",
    "Predictions",
    "Reading",
    "Trajectories",
    "evaluate",
    "load_candidate",
    "write_predictions",
]
