"""Train a model on unlabelled documents, and measure whether it is better than its base."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Interval

from simlte_st.arguments import Count, CountOrZero, NotNegative, Plural, Positive, PositiveShare, Seed, check_arguments
from simlte_st.distributed import launcher_rank, on_main
from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed
from simlte_st.models.names import warn_of_second_lsa
from simlte_st.reading.documents import DocumentReader, DocumentSource, Shards
from simlte_st.training import presets
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import check_run, open_run
from simlte_st.views.views import View
from simlte_st.words.sentences import Segmenter

WITHOUT_EFFECT = ("output", "report", "bf16", "workers", "save_steps", "device", "resume", "overwrite", "progress")
"""Arguments that do not affect the result, or are compared separately; they may change when a run is resumed."""


@check_arguments
def train(
    source: DocumentSource,
    output: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str] | None = None,
    static: bool | None = None,
    preset: str | Preset = "auto",
    view: View | None = None,
    batch_size: Plural | None = None,
    learning_rate: Positive | None = None,
    warmup: presets.Warmup | None = None,
    epochs: presets.Epochs | None = None,
    max_steps: Count | None = None,
    scale: Positive | None = None,
    symmetric: bool | None = None,
    mlm_weight: NotNegative | None = None,
    mlm_probability: PositiveShare | None = None,
    mlm_input: presets.MLMInput | None = None,
    mini_batch_num_tokens: Count | None = None,
    pooling: presets.Pooling | None = None,
    dropout: presets.Dropout | None = None,
    attention_dropout: presets.Dropout | None = None,
    max_view_length: Count | None = None,
    max_length: presets.MaxLength | None = None,
    backbone: presets.Backbone | None = None,
    segmenter: str | Segmenter = "punkt",
    lsa: CountOrZero | None = None,
    keep: Literal["verdict", "trained"] = "verdict",
    held_out: Annotated[float, Interval(ge=0, le=0.5)] = 0.1,
    probe: str | None = None,
    report: bool = False,
    bf16: bool | None = None,
    workers: CountOrZero = 0,
    save_steps: Count | None = None,
    device: str | None = None,
    seed: Seed = 0,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> TrainingResult:
    """Train an embedding model on unlabelled documents with DocSplit.

    The arguments from ``view=`` to ``backbone=`` override the preset; None keeps the preset's value.

    Under ``torchrun`` or ``accelerate launch``, all processes call this function with the same arguments, train one
    model together and return the same result; see ``docs/many_devices.md``.

    Args:
        source: The documents: anything that ``read_documents`` accepts or returns. Documents with the same text count
            once. A stream, ``read_documents(..., stream=True)``, is read during training, for corpora larger than the
            disk. It is shuffled and deduplicated within a buffer; its first 1,000 documents provide the held-out
            documents and the length estimates. It requires ``max_steps=`` if the preset does not set a number of steps.
        output: Folder for the finished model. While a run is in progress, its files are in ``OUTPUT.run``.
        base: Model to start from: a folder, or the name of a model on this machine or the Hugging Face Hub. A stock
            Longformer is loaded into this package's class (default: simlte-static with ``static=True``, the packaged
            all-MiniLM-L6-v2 with ``static=False``, otherwise chosen by the length of the documents).
        static: Train a static model, which has one vector for each token and no layers: it reads whole documents, and
            trains and encodes in seconds. If ``base=`` is an encoder, it is first distilled and taught its embeddings
            of 5,000 passages of the documents, which takes minutes. ``static=False`` trains an encoder (default:
            depends on the base).
        preset: Training settings: docsplit-bert and docsplit-longformer (from the papers), docsplit-tuned (for sentence
            encoders), docsplit-static (for static models), or auto, to choose by the base. docsplit-longformer
            converts a base that reads fewer than 4,096 tokens.
        view: How to draw the two views of a document: ``DocSplit()`` (a random sentence split) or a baseline view.
        batch_size: Batch size in documents, over all processes.
        learning_rate: Peak learning rate of AdamW.
        warmup: Fraction of the steps used for learning-rate warmup; a linear decay follows.
        epochs: Number of passes over the documents.
        max_steps: Number of optimizer steps; overrides ``epochs=`` and the preset.
        scale: Inverse temperature of the similarities, 1/tau: use 20 for language models, 2 for sentence encoders and 1
            for static models.
        symmetric: Compute the contrastive loss in both directions, so that each second view must also find its first.
        mlm_weight: Weight of the masked-language-model (MLM) loss; 0 turns it off.
        mlm_probability: Fraction of the tokens to mask for the MLM loss.
        mlm_input: How to compute the MLM loss: ``separate`` runs a second pass over masked copies of the views, as in
            SimCSE and the DocSplit paper; ``shared`` uses one masked pass for both losses, at half the cost, as in
            DeCLUTR.
        mini_batch_num_tokens: Number of tokens per forward pass, to limit memory by gradient caching (default: the
            whole batch).
        pooling: Pooling mode: ``cls``, ``mean``, or ``keep`` to keep the base's.
        dropout: Dropout probability in the encoder during training (default: as in the checkpoint).
        attention_dropout: Dropout probability of attention weights; a nonzero value makes a Longformer a quarter slower
            on a CPU (default: ``dropout=``).
        max_view_length: Maximum view length in tokens, special tokens included (default: the model's limit).
        max_length: Maximum document length of the finished model, in tokens. A base that reads fewer tokens is
            converted before training (see ``backbone=``). ``base`` keeps the base's limit (default: the base's limit;
            if that would truncate more than a tenth of the tokens, the finished model reads whole documents in chunks).
        backbone: How to convert a base that reads fewer than ``max_length=`` tokens: ``longformer`` turns it into a
            Longformer; ``chunk-mean`` averages chunk embeddings, each pooled as set by ``pooling=`` (default:
            longformer).
        segmenter: How to split documents into sentences: ``punkt``, or a callable from a text to its sentences.
        lsa: Number of dimensions of a latent semantic analysis of the documents, which is appended to an encoder's
            embeddings or folded into a static model's, whose size stays the same; 0 for none (default: 256 for a static
            model, 0 for an encoder).
        keep: Which model to keep: ``verdict`` keeps the base if training did not clearly help, and saves the trained
            model in ``OUTPUT.trained``; ``trained`` always keeps the trained model.
        held_out: Fraction of the documents to hold out for the verdict, up to 500 documents. In a small corpus, up to
            three times this fraction is held out, to reach 100 documents. 0 skips the verdict.
        probe: Column with classes, folders or tags. A classifier trained on a few held-out labels of each class then
            counts towards the verdict; training never sees the labels.
        report: Write an HTML report next to the model, ``OUTPUT.report.html``, with the loss curve, the verdict, and
            the held-out documents whose neighbours changed most, including texts. Needs the ``explore`` extra.
        bf16: Train in bfloat16 (default: if the hardware supports it; some CPUs do).
        workers: Number of processes that prepare batches; 0 for the training process itself.
        save_steps: Steps between checkpoints (default: about ten checkpoints per run, four for a static model).
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        seed: Random seed.
        resume: Continue an interrupted run; all other arguments must be the same.
        overwrite: Overwrite existing output.
        progress: Show progress bars.

    Returns:
        The result; ``result.load()`` loads the finished model.

    Raises:
        DataError: The source cannot be read or has too few usable documents.
        ConfigurationError: An argument is out of range or conflicts with another, the device does not exist, or the
            output exists, contains the documents or is in use by another process.
        ResumeError: There is no run to resume, or the interrupted run had different arguments.
        ModelError: The base cannot be loaded or cannot be trained with these settings.
        TrainingInterrupted: Ctrl-C or SIGTERM stopped the run after a checkpoint; continue with ``resume=True``.
        MissingExtraError: ``report=True`` needs the ``explore`` extra, which is not installed.

    Example:
        ::

            import simlte_st

            result = simlte_st.train("my_documents", "my-model")
            print(result)  # a description, the verdict and its measures
            vectors = result.load().encode(["A long document ...", "Another one ..."])
    """
    settings = {name: argument for name, argument in locals().items() if name not in WITHOUT_EFFECT}
    changes = presets.preset_changes(settings)
    selected_preset = preset if isinstance(preset, Preset) else None if preset == "auto" else get_preset(preset)
    (selected_preset or Preset()).changed(**changes)  # rejects conflicts
    if held_out == 0 and (report or probe is not None):
        name = "report" if probe is None else "probe"
        raise ConfigurationError(f"{name}= needs held-out documents: set held_out= above 0.")
    if report:
        check_installed("bokeh", "explore", "the training report")
    if preset == presets.STATIC_PRESET:
        static = True

    def check() -> DocumentReader | Shards:
        return check_run(
            source, Path(output), base=base, probe=probe, report=report, resume=resume, overwrite=overwrite
        )

    documents = check() if launcher_rank()[1] == 1 else None  # with several processes, the main process checks later

    from simlte_st.training.finish import choose_model, save  # takes seconds to import
    from simlte_st.training.fit import fit
    from simlte_st.training.load_corpus import load_corpus
    from simlte_st.training.prepare_model import choose_base, prepare_model, teach_base

    with open_run(Path(output), device=device, bf16=bf16, seed=seed, progress=progress, resume=resume) as run:
        if documents is None:
            main_documents = on_main(check)()
            documents = source if isinstance(source, Shards) else main_documents
        for_encoders = selected_preset is not None or bf16 or any(name in changes for name in presets.ONLY_ENCODERS)
        base_name = choose_base(run, documents, base, static=False if static is None and for_encoders else static)
        run.start(settings, base=base_name, overwrite=overwrite)
        setup = prepare_model(run, base_name, selected_preset, changes, static=static, lsa=lsa, segmenter=segmenter)
        corpus = load_corpus(run, documents, setup, held_out=held_out, probe=probe)
        teach_base(run, setup, corpus.sentences)
        if setup.static and (lsa or (lsa is None and corpus.stream is None)):
            warn_of_second_lsa(base_name)
        stats = fit(run, setup, corpus, workers=workers, save_steps=save_steps)
        choice = choose_model(
            run, setup, corpus, stats, measure=held_out > 0, probe=probe is not None, lsa=lsa, keep=keep
        )
        return save(run, setup, corpus, stats, choice, report=report)
