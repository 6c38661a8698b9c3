"""Composition of a command: its own arguments, the library's keyword arguments, reading options, common options.

A command is a function that takes :class:`Options` and its own arguments, calls the library, and returns a
:class:`Result`. The keyword arguments of the library's functions become options: types, ranges and defaults come from
their signatures, help from their docstrings.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

from cyclopts import App, Group, Parameter
from docstring_parser import DocstringStyle, parse

from simlte_st import __version__
from simlte_st.arguments import alternatives, check_value
from simlte_st.cli.terminal import in_options
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.documents import DocumentReader, read_documents
from simlte_st.reading.reader import ReadReport
from simlte_st.reading.sources import PLACES

COMMANDS = (
    "train", "encode", "index", "search", "link", "serve", "explore", "compare", "evaluate", "dedupe", "convert",
    "export", "demo",
)  # fmt: skip
"""The commands, in the order of the help."""

SUMMARY = "Adapt embedding models to documents without labels; encode, search and explore documents."

EXAMPLES = (
    "simlte train my_documents --output my-model",
    "simlte index my-model my_documents --output my.index",
    'simlte search my.index "floods in the north"',
    "simlte train --help",
)

SourceArgument = Annotated[str, Parameter(required=True)]
"""Sources of documents; at least one is required."""

_registered: dict[str, Command] = {}


@dataclass(frozen=True)
class Result:
    """The output of a command.

    Attributes:
        text: Text for the terminal; parameters in it are shown as options.
        values: The same as JSON values.
        notes: Lines for standard error.
        read: What was read. Standard error has its summary; with ``--quiet``, only skipped documents.
        laid_out: Whether to print ``text`` unchanged, because it quotes documents.
        status: Exit status; with several results, that of the last one.
    """

    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    read: ReadReport | None = None
    laid_out: bool = False
    status: int = 0


class Options(dict[str, Any]):
    """The given options, by parameter name."""

    def of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the options that a library function takes."""
        taken = _parameters(function)
        progress = {"progress": not self.get("quiet")} if "progress" in taken else {}
        return {name: self[name] for name in taken if name in self} | progress

    def read(self, *source: str) -> DocumentReader:
        """Return a reader of the sources, with the reading options."""
        for each in source if len(source) > 1 else ():  # the reader would treat a missing file's name as a text
            if not (each == "-" or each.startswith("hub:") or "://" in each or os.path.lexists(each)):
                raise DataError(f"There is no file or folder {each!r}.")
        places = [Path(each) if each == "-" else each for each in source]  # otherwise "-" alone could be a text
        # With stream=True, which only train has, the reader is Shards.
        reader: DocumentReader = read_documents(places[0] if len(places) == 1 else places, **self.of(read_documents))
        if isinstance(reader, DocumentReader):  # before imports that take seconds
            reader.check(self.get("probe") or self.get("label"))
        return reader

    def refuse_others(self, *functions: Callable[..., Any], own: Collection[str] = ()) -> None:
        """Reject options that neither these functions nor the command takes."""
        known = {*own, *(name for function in (*functions, _common) for name in _parameters(function))}
        for name in self.keys() - known:
            raise ConfigurationError(f"{name}= cannot be combined with the other arguments: leave it out.")


@dataclass(frozen=True)
class Command:
    """A command, as registered by :func:`command`.

    Attributes:
        name: Name on the command line.
        function: Function to run. Its docstring is the help: a summary, a description, ``Args:`` and ``Examples:``.
        takes: Library functions or dataclasses whose keyword arguments become options, by their heading in the help;
            ``""`` is the heading of the command's own options.
        reads: Whether the command reads documents, and so has the options of ``read_documents``.
        without: Keyword arguments that do not become options.
        named: Names of options that differ from their parameter.
        words: Options for parameters that occur only in messages.
        matches: Whether ``quiet=`` gives grep's exit status: 0 for hits, 1 for none, 2 after an error.
    """

    name: str
    function: Callable[..., Result | Iterator[Result]]
    takes: Mapping[str, Iterable[Callable[..., Any]]]
    reads: bool = False
    without: Collection[str] = ()
    named: Mapping[str, Parameter] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    matches: bool = False

    @functools.cached_property
    def parameters(self) -> dict[str, tuple[inspect.Parameter, Group, str]]:
        """All command-line arguments, each with its group and its text in the help."""
        sources: list[tuple[Callable[..., Any], Group]] = [(self.function, _OWN)]
        for order, (heading, functions) in enumerate(self.takes.items(), start=1):
            group = Group(heading, sort_key=order) if heading else _OWN
            sources += [(function, group) for function in functions]
        sources += [*([(read_documents, _READING)] if self.reads else []), (_common, _COMMON)]
        hidden = {"progress", *self.without, *_READ_BY_COMMANDS} - self.named.keys()
        found: dict[str, tuple[inspect.Parameter, Group, str]] = {}
        for function, group in sources:
            own = function is self.function
            for name, each in _parameters(function, every=own).items():
                if (own or name not in hidden) and name not in found and _kinds(each.annotation):
                    found[name] = each, _COMMON if name == "overwrite" else group, _helps(function).get(name, "")
        return found

    @functools.cached_property
    def flags(self) -> dict[str, str]:
        """The option or positional argument of each parameter, and its negative option."""
        found = {**dict.fromkeys(("progress", "progress=False"), "--quiet"), **_ELSEWHERE}
        for name, (each, _, _) in self.parameters.items():
            other = self.named.get(name, Parameter())
            found[name] = next(iter(other.name or ()), _flag(each))
            found |= {f"{name}=False": option for option in other.negative or ()}
        return {**found, **self.words}

    def app(self) -> App:
        """Return the command for Cyclopts, with its help."""

        def call(*arguments: Any, **options: Any) -> Any:
            return self(*arguments, **options)

        parameters = [
            _option(each, group, self._in_options(text), self.named.get(each.name, Parameter()))
            for each, group, text in self.parameters.values()
        ]
        parameters.sort(key=lambda each: each.kind)
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        call.command = self  # type: ignore[attr-defined]
        described, _, examples = inspect.cleandoc(self.function.__doc__ or "").partition("\n\nExamples:\n")
        paragraphs = described.partition("\n\nArgs:")[0].split("\n\n")
        text = self._in_options("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
        app = _app(
            self.name,
            text,
            inspect.cleandoc(examples).splitlines(),
            version_flags=[],
            sort_key=COMMANDS.index(self.name),
        )
        app.default(call)
        return app

    def _in_options(self, text: str) -> str:
        """Replace parameters in a docstring by options, and remove its backticks."""
        return re.sub(r"``([^`]*)``", lambda each: in_options(each[1], self.flags).replace('"', ""), text)

    def __call__(self, *arguments: Any, **options: Any) -> Result | Iterator[Result]:
        """Run the command."""
        own = inspect.signature(self.function).parameters
        given = {name: value for name, value in options.items() if name in own}
        return self.function(Options(options), *arguments, **given)


def command(
    name: str, takes: Mapping[str, Iterable[Callable[..., Any]]] | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command; ``settings`` are the other attributes of :class:`Command`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _registered[name] = Command(name, function, takes or {}, **settings)
        return function

    return register


def commands() -> dict[str, Command]:
    """Return all commands, in the order of the help."""
    for module in ("documents", "models", "search", "training"):
        importlib.import_module(f"simlte_st.cli.{module}")
    return {name: _registered[name] for name in COMMANDS}


def build() -> App:
    """Return ``simlte`` with all commands."""
    root = _app("simlte", SUMMARY, EXAMPLES, version=__version__)
    for each in commands().values():
        root.command(each.app())
    return root


_OWN, _READING, _COMMON = Group("Options", sort_key=0), Group("Reading", sort_key=50), Group("Common", sort_key=60)
_PLACES = f"{PLACES[0].upper()}{PLACES[1:]}; or several of these"
_READ_BY_COMMANDS = ("label_column", "metadata", "stream")
"""Arguments of ``read_documents`` that commands rename or do not have."""

_ELSEWHERE = {"stream": "simlte train --stream", "where": "simlte search --where"}
"""Options of other commands, for parameters that messages and help texts mention."""


def _common(*, quiet: bool = False, json: bool = False, verbose: bool = False, debug: bool = False) -> None:
    """Take the options of every command.

    Args:
        quiet: Show only results, warnings and errors.
        json: Print the result as one JSON object, and nothing else.
        verbose: Show the libraries' messages too.
        debug: Show the traceback of an error.
    """


def _app(name: str, text: str, examples: Sequence[str], **options: Any) -> App:
    lines = "".join(f"\n  {each}" for each in examples)
    return App(name=name, help=text, help_epilogue=f"Examples:\n{lines}", help_format="plaintext", **options)


@functools.cache
def _parameters(function: Callable[..., Any], every: bool = False) -> dict[str, inspect.Parameter]:
    """Return the keyword (or all) parameters of a function or dataclass, with resolved annotations."""
    hints, found = get_type_hints(function, include_extras=True), {}
    for name, each in inspect.signature(function).parameters.items():
        if isinstance(function, type):
            each = each.replace(kind=each.KEYWORD_ONLY, default=None)
        if every or each.kind is each.KEYWORD_ONLY:
            found[name] = each.replace(annotation=hints[name])
    return found


@functools.cache
def _helps(function: Callable[..., Any]) -> dict[str, str]:
    """Return the docstring's text for each argument."""
    described = parse(inspect.cleandoc(function.__doc__ or ""), DocstringStyle.GOOGLE).params
    texts = {each.arg_name.lstrip("*"): " ".join((each.description or "").split()) for each in described}
    return {name: text.replace("{places}", _PLACES) for name, text in texts.items()}


def _kinds(annotation: Any) -> list[Any]:
    """Return the types of an argument that the command line can parse; none if only Python can pass it."""
    kinds = [kind for kind, _ in alternatives(annotation)]
    simple = [kind for kind in kinds if kind in (bool, int, float, list[str]) or get_origin(kind) is Literal]
    lists = [list[str]] if Sequence[str] in kinds else []
    return [*simple, *lists, *([str] if str in kinds or Any in kinds else [])]


def _flag(each: inspect.Parameter) -> str:
    return f"--{each.name.replace('_', '-')}" if each.kind is each.KEYWORD_ONLY else each.name.upper()


def _option(each: inspect.Parameter, group: Group, text: str, named: Parameter) -> inspect.Parameter:
    """Return a parameter for Cyclopts."""
    annotation, kinds, flag = each.annotation, _kinds(each.annotation), _flag(each)
    options: dict[str, Any] = {"group": group} if each.kind is each.KEYWORD_ONLY else {"name": flag}
    if Sequence[str] in [kind for kind, _ in alternatives(annotation)]:
        options |= {"n_tokens": 1, "converter": functools.partial(_names, str in kinds)}
    elif list[str] in kinds:
        options["consume_multiple"] = 1
    elif int in kinds:
        options["converter"] = _whole
    options["negative"] = () if each.default is False or bool not in kinds else None
    options["show_default"] = each.default not in (None, each.empty) and bool not in kinds
    options["validator"] = lambda kind, value: check_value(flag, value, annotation | None)
    kinds += [type(None)] if each.default is None else []
    own = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Parameter)]
    described: Any = (functools.reduce(operator.or_, kinds), Parameter(help=text, **options), *own, named)
    return each.replace(annotation=Annotated[described])


def _names(single: bool, kind: Any, tokens: Sequence[Any]) -> str | list[str]:
    """Split names at commas."""
    names = [name.strip() for name in tokens[0].value.split(",")]
    return names[0] if single and len(names) == 1 else names


def _whole(kind: Any, tokens: Sequence[Any]) -> int | str:
    """Parse a whole number, or keep the text for the later check: Cyclopts would round 1.5."""
    text = tokens[0].value
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else text
