"""``simlte demo``: the main job, offline."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from simlte_st.cli.arguments import add_arguments
from simlte_st.cli.options import number
from simlte_st.cli.terminal import wrapped
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE, check_model, usage_example


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="train on news articles without their classes, and measure with them what that gained",
        description="Train a model on 2,225 articles of BBC News without their classes, then measure with them, on "
        "articles that training has not seen, what that gained: a minute, without a network. Base model and articles "
        "come with the extra demo.",
        examples=("simlte demo", "simlte demo --documents 300 --output quick"),
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default=Path("simlte-demo"),
        help="folder of the model; one that is there is replaced (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--documents", type=number(int), metavar="N", help="use no more articles than these, for a quick look"
    )
    parser.add_argument("--max-steps", type=number(int), metavar="N", help="steps of training (default: the preset's)")
    add_arguments(parser, "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train without the classes, and measure with them."""
    from simlte_st.data.bbc_news import bbc_news
    from simlte_st.files import check_free

    check_free(arguments.output, overwrite=True)
    check_model(PACKAGED_BASE)
    began, articles = time.perf_counter(), bbc_news()
    from simlte_st import train  # take seconds to import
    from simlte_st.evaluation import (
        compare_halves,
        compare_probes,
        comparison_table,
        sample_documents,
        split_by_label,
    )
    from simlte_st.models.loading import load_model
    from simlte_st.training.folder import trained_path

    if arguments.documents:
        articles = sample_documents(articles, arguments.documents, 0)
    train_part, test_part = split_by_label(articles, 0.3, 0)
    sizes = f"{len(train_part):,} articles to train on, without their classes; {len(test_part):,} to test on"
    print(wrapped(f"BBC News: {sizes}."), flush=True)
    result = train(
        train_part, arguments.output, max_steps=arguments.max_steps, overwrite=True
    )  # no base: which kind of model depends on the length of the documents
    print(wrapped(f"\n{result.summary()}\n"))

    print(
        wrapped("Now with the classes, on articles that were kept from all of this. Measuring three models ..."),
        flush=True,
    )
    trained = trained_path(arguments.output) if result.kept == "base" else arguments.output
    names = {"an encoder, untrained": PACKAGED_BASE, "simlte-static, untrained": OWN_STATIC, "trained": trained}
    models = {name: load_model(source).model for name, source in names.items()}
    halves = compare_halves(models, sample_documents(test_part, 300, 0))
    probes = compare_probes(models, train_part, test_part, max_seq_length=128)
    same = halves["trained"].structure.documents
    kept = "The base, as training did not clearly help," if result.kept == "base" else "The trained model"
    text = (
        f"\n{comparison_table(halves, probes)}\n\n"
        f"Same neighbours: on how many of the 10 nearest articles, of {same}, do both halves of an article agree? "
        "Split-half: does one half find the other? Probes: 5 labelled articles a class (10 draws, mean ± deviation), "
        "and all of them; the encoder reads the first 128 tokens, all others read everything. Percent.\n\n"
        f"{kept} is in {arguments.output}. To use it:\n\n{usage_example(arguments.output)}\n\n"
        f"{time.perf_counter() - began:.0f} seconds."
    )
    print(wrapped(text))
    return 0
