"""From nothing to a study's numbers: data, trainings, evaluation and report, by one command."""

from overtone.reproduce.run import reproduce
from overtone.reproduce.studies import STUDIES, find_study
from overtone.reproduce.study import Comparison, Study, Training

__all__ = ["STUDIES", "Comparison", "Study", "Training", "find_study", "reproduce"]
