from aitraining.params import LLMTrainingParams

__all__ = ["LLMTrainingParams"]
