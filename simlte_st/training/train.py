"""The main job: from a base model and documents without labels to a trained model, and whether it is better."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from simlte_st.config import configured
from simlte_st.training.check import check_run
from simlte_st.training.config import TrainConfig

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import TrainOverrides
    from simlte_st.training.result import TrainingResult


@configured(TrainConfig)
def train(
    source: Any,
    output: str | os.PathLike[str],
    config: TrainConfig | None = None,
    **overrides: Unpack[TrainOverrides],
) -> TrainingResult:
    """Train a DocSplit model on documents without labels.

    If the base would cut more than a tenth of the tokens, the finished model reads whole documents, in chunks: see
    ``max_length`` of :class:`~simlte_st.training.Preset`.

    Under ``torchrun`` or ``accelerate launch`` all processes call this alike, train one model together and get the same
    result; see ``docs/many_devices.md``.

    Args:
        source: The documents; anything :func:`~simlte_st.data.read_documents` takes. Of documents with exactly the same
            text only the first is used. With ``stream=True``, parquet files, ``"hub:NAME"`` or a
            ``datasets.IterableDataset`` with known features.
        output: Folder of the finished model. Until then the run lives in ``OUTPUT.run`` beside it.
        config: The settings.
        **overrides: Settings of :class:`~simlte_st.training.TrainConfig`, in place of those of ``config``, and settings
            of :class:`~simlte_st.training.Preset`, in place of the preset's, e.g. ``learning_rate=2e-5``; None keeps
            the preset's.

    Returns:
        The result; ``result.load()`` loads the finished model.

    Raises:
        DataError: The source cannot be read, or has too few usable documents.
        ConfigurationError: A setting is out of its range, there is no such device, something exists at ``output``
            already, the documents are in there, or another process is working on it.
        ResumeError: There is nothing to resume, or it was started with other settings.
        ModelError: The base cannot be loaded or cannot be trained this way.
        TrainingInterrupted: Ctrl-C or SIGTERM. The step was finished and a checkpoint written, to continue from with
            ``resume=True``.
        MissingExtraError: ``report=True``, and the extra ``explore`` is not installed.
        ProcessLostError: The run has several processes, and another one ended.
    """
    made = TrainConfig.make(config, overrides)
    check_run(source, output, made)

    from simlte_st.training.evaluate import evaluate  # the stages, which take seconds to import
    from simlte_st.training.fit import fit
    from simlte_st.training.load_corpus import load_corpus
    from simlte_st.training.load_model import load_model
    from simlte_st.training.run import TrainingRun
    from simlte_st.training.save import save

    run = TrainingRun(source, output, made)
    with run.open():
        run = load_model(run)
        run = load_corpus(run)
        run = fit(run)
        run = evaluate(run)
        run = save(run)
    assert run.result is not None
    return run.result
