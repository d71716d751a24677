"""Which recipe trains which task."""

from collections.abc import Mapping

from ftpipeline.backends.causal_task import CausalLanguageModel
from ftpipeline.backends.tasks import SequenceClassification, TaskRecipe
from ftpipeline.errors import InputError

RECIPES: Mapping[str, type[TaskRecipe]] = {
    "sequence_classification": SequenceClassification,
    "causal_lm": CausalLanguageModel,
}


def recipe_of(task: str) -> type[TaskRecipe]:
    """Return the recipe of a task by its name in the manifest.

    Raises:
        InputError: there is none.
    """
    try:
        return RECIPES[task]
    except KeyError as error:
        raise InputError(f"task {task!r} cannot be trained; use one of {', '.join(RECIPES)}") from error
