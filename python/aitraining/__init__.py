"""Starts the `aitraining` executable from Python. Standard library only; no Python runs while it trains."""
from aitraining.params import LLMTrainingParams
from aitraining.project import AutoTrainProject, TrainingFailed, executable

__all__ = ["AutoTrainProject", "LLMTrainingParams", "TrainingFailed", "executable"]
