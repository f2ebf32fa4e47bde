from aitraining.project import AutoTrainProject

__all__ = ["AutoTrainProject"]
