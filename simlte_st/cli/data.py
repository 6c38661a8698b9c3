"""``simlte data``: the papers' data sets, and any documents in numbers."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from dataclasses import asdict
from typing import Any

from simlte_st.cli.arguments import (
    SOURCE_HELP,
    Sources,
    add_common_arguments,
    add_json_argument,
    add_quiet_argument,
    add_seed_argument,
    add_source_arguments,
    print_result,
    reading_options,
)
from simlte_st.cli.messages import note
from simlte_st.cli.terminal import wrapped
from simlte_st.errors import ConfigurationError


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "data",
        help="list the papers' data sets; count documents, classes and words of one, or of any corpus",
        description="The data sets of the papers, by name, and any corpus in numbers.",
        allow_abbrev=False,
        examples=(
            "simlte data list",
            "simlte data stats my_documents",
        ),
    )
    commands = parser.add_subparsers(required=True, metavar="ACTION")

    stats = commands.add_parser(
        "stats",
        help="count documents, classes and words, beside what the papers print",
        description="Count documents, classes and words (mean, median, longest; a word is what white space separates). "
        "For a data set of the papers their own numbers stand beside, to see whether it is the same data.",
        allow_abbrev=False,
        examples=(
            "simlte data stats my_documents",
            "simlte data stats posts.csv --text-column body --label-column topic --json",
            "simlte data stats arxiv --path snapshot.json --option text=abstract",
        ),
    )
    stats.add_argument(
        "source",
        metavar="NAME|SOURCE",
        nargs="+",
        action=Sources,
        help=f"name of a data set (simlte data list); or {SOURCE_HELP}",
    )
    stats.add_argument("--path", metavar="PATH", help="where the named data set is, in the form it comes in")
    stats.add_argument("--label-column", metavar="NAME", help="column of the class (for a data set: found)")
    stats.add_argument("--split-column", metavar="NAME", help="column of the split of a data set (default: split)")
    stats.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="option of the data set, e.g. text=abstract"
    )
    add_json_argument(stats)
    add_source_arguments(stats)
    add_seed_argument(stats)
    add_quiet_argument(stats)
    add_common_arguments(stats)
    stats.set_defaults(run=run_stats)

    listing = commands.add_parser(
        "list",
        help="list the data sets: where to get them, and in which form",
        allow_abbrev=False,
        examples=("simlte data list", "simlte data list --json"),
    )
    add_json_argument(listing)
    add_common_arguments(listing)
    listing.set_defaults(run=run_list)


def run_list(arguments: argparse.Namespace) -> int:
    """List the data sets."""
    from simlte_st.datasets import SETS

    lines, values = [], {}
    for name, item in SETS.items():
        card, hub = item.card, getattr(item, "hub", None)
        lines.append(f"{name}\t{card.title}")
        told = [("from", card.home + (f"; on the Hub: {hub.id}" if hub else "")), ("licence", card.licence)]
        told += [("--path", form) for form in card.forms]
        lines += [wrapped(f"  {what:<9}{value}", indent=11) for what, value in told]
        values[name] = {
            "title": card.title,
            "home": card.home,
            "hub": hub.id if hub else None,
            "licence": card.licence,
            "forms": list(card.forms),
        }
    print_result(arguments, "\n".join(lines), values)
    return 0


def run_stats(arguments: argparse.Namespace) -> int:
    """Count."""
    from simlte_st.datasets import SETS

    text, result = _named(arguments) if arguments.source in [*SETS] else _corpus(arguments, ", ".join(SETS))
    print_result(arguments, text, result)
    return 0


def _named(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Count a data set of the papers: as a text, and as JSON values."""
    from simlte_st.datasets import SETS, CitationBenchmark, load_benchmark, read_benchmark, statistics
    from simlte_st.datasets.citations import CitationSet

    name, settings = arguments.source, _settings(arguments)
    card = SETS[name].card
    result: dict[str, Any] = {"name": name, "title": card.title}
    lines = []
    if isinstance(SETS[name], CitationSet):
        progress = not arguments.quiet
        benchmark = load_benchmark(name, arguments.path, seed=arguments.seed, progress=progress, **settings)
        assert isinstance(benchmark, CitationBenchmark)
        report, counted = benchmark.report, statistics(benchmark)
        result["pairs"] = dict(sorted(Counter(benchmark.pairs["split"]).items()))
        result["citations"] = len(benchmark.links)
        result["split_origin"] = benchmark.split_origin
        lines.append(f"pairs: {_counts(result['pairs'])}; {result['citations']:,} of them citations")
        lines.append(f"pairs and splits: {benchmark.split_origin}")
    else:
        reader = read_benchmark(name, arguments.path, **settings)
        counted = statistics(reader, progress=not arguments.quiet)
        report = reader.report
    result |= {"source": report.source, "statistics": asdict(counted)}
    result |= {"papers": asdict(card.printed) if card.printed else None, "report": report.to_dict()}
    note(report.summary(), arguments)
    lines = [*_lines(counted, card.printed, f"{name}: {card.title}, from {report.source}"), *lines]
    return "\n".join([*lines, *(f"note: {each}" for each in card.notes), f"licence: {card.licence}"]), result


def _corpus(arguments: argparse.Namespace, names: str) -> tuple[str, dict[str, Any]]:
    """Count any corpus: as a text, and as JSON values."""
    from simlte_st.data.documents import read_documents
    from simlte_st.datasets import statistics

    source = arguments.source
    if isinstance(source, str) and not source.startswith("hub:") and not os.path.exists(source):
        raise ConfigurationError(
            f"There is no data set and no file or folder {source!r}. The data sets are {names}; other documents are "
            f"read from {SOURCE_HELP}."
        )
    for flag, value in (
        ("--path", arguments.path),
        ("--option", arguments.option),
        ("--split-column", arguments.split_column),
    ):
        if value:
            raise ConfigurationError(f"{flag} is for a data set of the papers ({names}), not for other documents.")
    shown = source if isinstance(source, str) else ", ".join(source)
    reader = read_documents(source, label_column=arguments.label_column, **reading_options(arguments))
    counted = statistics(reader, progress=not arguments.quiet)
    note(reader.report.summary(), arguments)
    result = {"source": source, "statistics": asdict(counted), "report": reader.report.to_dict()}
    return "\n".join(_lines(counted, None, shown)), result


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Give the settings for a data set: what was asked for, and its own options."""
    settings = {
        key: value
        for key in ("text_column", "label_column", "id_column", "split_column", "limit")
        if (value := getattr(arguments, key)) is not None
    }
    if arguments.encoding != "utf-8":  # the default of the command; a data set has one of its own
        settings["encoding"] = arguments.encoding
    for option in arguments.option:
        key, equals, value = option.partition("=")
        if not equals or not key.isidentifier() or key in settings or hasattr(arguments, key):
            raise ConfigurationError(f"--option {option}: give an option of the data set as KEY=VALUE.")
        settings[key] = value
    return settings


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items())


def _lines(counted: Any, printed: Any, title: str) -> list[str]:
    from simlte_st.datasets import statistics_table

    lines = [title, statistics_table(counted, printed)]
    if counted.labels:
        shown = dict(list(counted.labels.items())[:_CLASSES])
        rest = len(counted.labels) - len(shown)
        lines.append(f"classes: {_counts(shown)}" + (f", and {rest} more" if rest else ""))
        if counted.unlabelled:
            lines.append(f"without a class: {counted.unlabelled:,}")
    if counted.splits:
        lines.append(f"splits: {_counts(counted.splits)}")
    return lines


_CLASSES = 40
