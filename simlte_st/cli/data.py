"""``simlte data``: the papers' data sets, and any documents in numbers."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from simlte_st.cli.arguments import SOURCE_HELP, Sources, add_common_arguments, add_source_arguments, reading_options
from simlte_st.errors import ConfigurationError


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "data",
        help="list the papers' data sets; count documents, classes and words of one, or of any corpus",
        description="The data sets of the papers, by name, and any corpus in numbers.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="ACTION")

    stats = commands.add_parser(
        "stats",
        help="count documents, classes and words, beside what the papers print",
        description="Count documents, classes and words (mean, median, longest; a word is what white space separates). "
        "For a data set of the papers their own numbers stand beside, to see whether it is the same data.",
        allow_abbrev=False,
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
    stats.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(stats)
    add_common_arguments(stats)
    stats.set_defaults(run=run_stats)

    listing = commands.add_parser(
        "list", help="list the data sets: where to get them, and in which form", allow_abbrev=False
    )
    add_common_arguments(listing)
    listing.set_defaults(run=run_list)


def run_list(arguments: argparse.Namespace) -> int:
    """List the data sets."""
    from simlte_st.datasets import SETS

    for name, item in SETS.items():
        hub = getattr(item, "hub", None)
        print(f"{name}\t{item.card.title}")
        print(f"  from     {item.card.home}" + (f"; on the Hub: {hub.id}" if hub else ""))
        print(f"  licence  {item.card.licence}")
        for form in item.card.forms:
            print(f"  --path   {form}")
    return 0


def run_stats(arguments: argparse.Namespace) -> int:
    """Count."""
    from simlte_st.datasets import SETS

    result = _named(arguments) if arguments.source in [*SETS] else _corpus(arguments, ", ".join(SETS))
    if arguments.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    return 0


def _named(arguments: argparse.Namespace) -> dict[str, Any]:
    """Count a data set of the papers."""
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
    if not arguments.json:
        _print(counted, card.printed, f"{name}: {card.title}, from {report.source}")
        print("\n".join([*lines, *(f"note: {note}" for note in card.notes), f"licence: {card.licence}"]))
    print(report.summary(), file=sys.stderr)
    return result


def _corpus(arguments: argparse.Namespace, names: str) -> dict[str, Any]:
    """Count any corpus."""
    from simlte_st.data.documents import read_documents
    from simlte_st.datasets import statistics

    source = arguments.source
    if isinstance(source, str) and not source.startswith("hub:") and not os.path.exists(source):
        raise ConfigurationError(
            f"There is no data set and no file or folder {source!r}. The data sets are {names}; other documents are "
            f"read from a {SOURCE_HELP}."
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
    if not arguments.json:
        _print(counted, None, shown)
    print(reader.report.summary(), file=sys.stderr)
    return {"source": source, "statistics": asdict(counted), "report": reader.report.to_dict()}


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


def _print(counted: Any, printed: Any, title: str) -> None:
    from simlte_st.datasets import statistics_table

    print(title)
    print(statistics_table(counted, printed))
    if counted.labels:
        shown = dict(list(counted.labels.items())[:_CLASSES])
        rest = len(counted.labels) - len(shown)
        print(f"classes: {_counts(shown)}" + (f", and {rest} more" if rest else ""))
        if counted.unlabelled:
            print(f"without a class: {counted.unlabelled:,}")
    if counted.splits:
        print(f"splits: {_counts(counted.splits)}")


_CLASSES = 40
