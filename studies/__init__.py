"""From nothing to a study's numbers: data, trainings, evaluation, report and page."""
