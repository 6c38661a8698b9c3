"""Build commands from functions, and their options from the keyword arguments of the library's functions.

A command is a function that takes :class:`Options` and its own arguments, calls the library, and returns a
:class:`Result`. The types, ranges and defaults of the other options come from the signatures of the library's
functions, and their help from the docstrings.
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
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_origin, get_type_hints

from cyclopts import App, Group, Parameter, Token
from docstring_parser import DocstringStyle, parse

from simlte_st import __version__
from simlte_st.arguments import alternatives, check_value
from simlte_st.cli.terminal import in_options
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.documents import DocumentReader, ReadReport, read_documents
from simlte_st.reading.sources import PLACES

COMMANDS = (
    "train", "encode", "index", "search", "link", "serve", "mcp", "explore", "compare", "evaluate", "dedupe",
    "convert", "export", "demo",
)  # fmt: skip
"""The commands, in the order shown in the help."""

SUMMARY = "Adapt embedding models to documents without labels; encode, search and explore documents."

EXAMPLES = (
    "simlte train my_documents --output my-model",
    "simlte index my-model my_documents --output my.index",
    'simlte search my.index "floods in the north"',
    "simlte train --help",
)

SourceArgument = Annotated[str, Parameter(required=True)]
"""Sources of documents; at least one is required."""

Function: TypeAlias = Callable[..., object]
"""A function or dataclass whose keyword arguments become options."""

Takes: TypeAlias = Mapping[str, Iterable[Function]]
Run = TypeVar("Run", bound=Callable[..., Any])

_commands: dict[str, Command] = {}


@dataclass(frozen=True)
class Result:
    """The output of a command.

    Attributes:
        text: Text for the terminal; parameters in it are shown as options.
        values: The same output as JSON values.
        notes: Lines for standard error.
        reading: Reading report, summarised on standard error; with ``--quiet``, only skipped documents are reported.
        laid_out: Whether to print ``text`` unchanged, because it quotes documents.
        status: Exit status; with several results, that of the last one.
    """

    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    reading: ReadReport | None = None
    laid_out: bool = False
    status: int = 0


class Options(dict[str, Any]):
    """The options of a command line, by parameter name."""

    def of(self, function: Function) -> dict[str, Any]:
        """Return the options that a library function takes."""
        names = _parameters(function)
        progress = {"progress": not self.get("quiet")} if "progress" in names else {}
        return {name: self[name] for name in names if name in self} | progress

    def read(self, *sources: str) -> DocumentReader:
        """Return a reader for the sources, with the reading options."""
        for source in sources if len(sources) > 1 else ():  # the reader would treat a missing file's name as a text
            if not (source == "-" or source.startswith("hub:") or "://" in source or os.path.lexists(source)):
                raise DataError(f"There is no file or folder {source!r}.")
        places = [Path(source) if source == "-" else source for source in sources]  # a lone "-" could be a text
        # With stream=True, which only train takes, the reader is Shards.
        reader: DocumentReader = read_documents(places[0] if len(places) == 1 else places, **self.of(read_documents))
        if isinstance(reader, DocumentReader):  # to fail before imports that take seconds
            reader.check(self.get("probe") or self.get("label"))
        return reader

    def refuse_others(self, *functions: Function, parameters: Collection[str] = ()) -> None:
        """Reject options other than ``parameters``, the options of ``functions``, and the common options."""
        names = {*parameters, *(name for function in (*functions, _common_options) for name in _parameters(function))}
        for name in self.keys() - names:
            raise ConfigurationError(f"{name}= cannot be combined with the other arguments: leave it out.")


@dataclass(frozen=True)
class Command:
    """A command, as registered by :func:`command`.

    Attributes:
        name: Name on the command line.
        function: Function to run. Its docstring is the help: a summary, a description, ``Args:`` and ``Examples:``.
        takes: Library functions or dataclasses whose keyword arguments become options, by their heading in the help;
            ``""`` is the heading of the command's own options.
        reads: Whether the command reads documents and therefore takes the options of ``read_documents``.
        without: Keyword arguments that do not become options.
        names: Option names that differ from the parameter's name.
        aliases: Options to show for parameters that occur only in messages.
        matches: Whether ``quiet=`` sets the exit status as grep does: 0 for hits, 1 for none, 2 after an error.
    """

    name: str
    function: Callable[..., Result | Iterator[Result]]
    takes: Takes
    reads: bool = False
    without: Collection[str] = ()
    names: Mapping[str, Parameter] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    matches: bool = False

    @functools.cached_property
    def parameters(self) -> dict[str, tuple[inspect.Parameter, Group, str]]:
        """All command-line arguments, each with its group and its help text."""
        sources: list[tuple[Function, Group]] = [(self.function, _OWN)]
        for order, (heading, functions) in enumerate(self.takes.items(), start=1):
            group = Group(heading, sort_key=order) if heading else _OWN
            sources += [(function, group) for function in functions]
        sources += [*([(read_documents, _READING)] if self.reads else []), (_common_options, _COMMON)]
        hidden = {"progress", *self.without, *_READ_BY_COMMANDS} - self.names.keys()
        parameters: dict[str, tuple[inspect.Parameter, Group, str]] = {}
        for function, group in sources:
            is_own = function is self.function
            for name, parameter in _parameters(function, keyword_only=not is_own).items():
                if (is_own or name not in hidden) and name not in parameters and _parsable_types(parameter.annotation):
                    text = _argument_texts(function).get(name, "")
                    parameters[name] = parameter, _COMMON if name == "overwrite" else group, text
        return parameters

    @functools.cached_property
    def flags(self) -> dict[str, str]:
        """The option or positional argument of each parameter, and its negative option."""
        flags = {**dict.fromkeys(("progress", "progress=False"), "--quiet"), **_OTHER_COMMANDS}
        for name, (parameter, _, _) in self.parameters.items():
            renamed = self.names.get(name, Parameter())
            flags[name] = next(iter(renamed.name or ()), _flag(parameter))
            flags |= {f"{name}=False": flag for flag in renamed.negative or ()}
        return {**flags, **self.aliases}

    def app(self) -> App:
        """Return the command as a Cyclopts app, with its help."""

        def call(*arguments: object, **options: object) -> Result | Iterator[Result]:
            return self(*arguments, **options)

        parameters = [
            _to_cyclopts(parameter, group, self._in_options(text), self.names.get(name, Parameter()))
            for name, (parameter, group, text) in self.parameters.items()
        ]
        parameters.sort(key=lambda parameter: parameter.kind)
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        call.command = self  # type: ignore[attr-defined]
        description, _, examples = inspect.cleandoc(self.function.__doc__ or "").partition("\n\nExamples:\n")
        paragraphs = description.partition("\n\nArgs:")[0].split("\n\n")
        text = self._in_options("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
        lines = inspect.cleandoc(examples).splitlines()
        app = _make_app(self.name, text, lines, version_flags=[], sort_key=COMMANDS.index(self.name))
        app.default(call)
        return app

    def _in_options(self, text: str) -> str:
        """Replace parameters in a docstring with options, and remove its backticks."""
        return re.sub(r"``([^`]*)``", lambda match: in_options(match[1], self.flags).replace('"', ""), text)

    def __call__(self, *arguments: object, **options: object) -> Result | Iterator[Result]:
        """Run the command."""
        all_options = Options(options)
        return self.function(all_options, *arguments, **all_options.of(self.function))


def command(name: str, takes: Takes | None = None, **settings: Any) -> Callable[[Run], Run]:
    """Register a function as a command; ``settings`` are the other attributes of :class:`Command`."""

    def register(function: Run) -> Run:
        _commands[name] = Command(name, function, takes or {}, **settings)
        return function

    return register


def commands() -> dict[str, Command]:
    """Return all commands, in the order shown in the help."""
    for module in ("commands", "search"):
        importlib.import_module(f"simlte_st.cli.{module}")
    return {name: _commands[name] for name in COMMANDS}


def build() -> App:
    """Return ``simlte`` with all commands."""
    root = _make_app("simlte", SUMMARY, EXAMPLES, version=__version__)
    for command in commands().values():
        root.command(command.app())
    return root


_OWN, _READING, _COMMON = Group("Options", sort_key=0), Group("Reading", sort_key=50), Group("Common", sort_key=60)
_PLACES = f"{PLACES[0].upper()}{PLACES[1:]}; or several of these"
_READ_BY_COMMANDS = ("label_column", "metadata", "stream")
"""Arguments of ``read_documents`` that commands rename or do not take."""

_OTHER_COMMANDS = {"stream": "simlte train --stream", "where": "simlte search --where"}
"""Options of other commands, for parameters that messages and help texts mention."""


def _common_options(*, quiet: bool = False, json: bool = False, verbose: bool = False, debug: bool = False) -> None:
    """Declare the options of every command.

    Args:
        quiet: Show only results, warnings and errors.
        json: Print only the result, as one JSON object.
        verbose: Also show messages from libraries.
        debug: Show the traceback of an error.
    """


def _make_app(name: str, text: str, examples: Sequence[str], **options: Any) -> App:
    lines = "".join(f"\n  {example}" for example in examples)
    return App(name=name, help=text, help_epilogue=f"Examples:\n{lines}", help_format="plaintext", **options)


@functools.cache
def _parameters(function: Function, keyword_only: bool = True) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, or the fields of a dataclass, with resolved annotations."""
    hints, parameters = get_type_hints(function, include_extras=True), {}
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(function, type):
            parameter = parameter.replace(kind=parameter.KEYWORD_ONLY, default=None)
        if not keyword_only or parameter.kind is parameter.KEYWORD_ONLY:
            parameters[name] = parameter.replace(annotation=hints[name])
    return parameters


@functools.cache
def _argument_texts(function: Function) -> dict[str, str]:
    """Return the docstring's text for each argument."""
    arguments = parse(inspect.cleandoc(function.__doc__ or ""), DocstringStyle.GOOGLE).params
    texts = {argument.arg_name.lstrip("*"): " ".join((argument.description or "").split()) for argument in arguments}
    return {name: text.replace("{places}", _PLACES) for name, text in texts.items()}


def _parsable_types(annotation: object) -> list[Any]:
    """Return the types of an argument that the command line can parse, an empty list if only Python can pass it."""
    kinds = [kind for kind, _ in alternatives(annotation)]
    simple = [kind for kind in kinds if kind in (bool, int, float, list[str]) or get_origin(kind) is Literal]
    lists = [list[str]] if Sequence[str] in kinds else []
    return [*simple, *lists, *([str] if str in kinds or Any in kinds else [])]


def _flag(parameter: inspect.Parameter) -> str:
    is_option = parameter.kind is parameter.KEYWORD_ONLY
    return f"--{parameter.name.replace('_', '-')}" if is_option else parameter.name.upper()


def _to_cyclopts(parameter: inspect.Parameter, group: Group, text: str, renamed: Parameter) -> inspect.Parameter:
    """Return a parameter with Cyclopts' annotation."""
    annotation, default, flag = parameter.annotation, parameter.default, _flag(parameter)
    kinds = _parsable_types(annotation)
    settings: dict[str, Any] = {"group": group} if parameter.kind is parameter.KEYWORD_ONLY else {"name": flag}
    if Sequence[str] in [kind for kind, _ in alternatives(annotation)]:
        settings |= {"n_tokens": 1, "converter": functools.partial(_split_names, str in kinds)}
    elif list[str] in kinds:
        settings["consume_multiple"] = 1
    elif int in kinds:
        settings["converter"] = _parse_whole_number
    settings["negative"] = () if default is False or bool not in kinds else None
    settings["show_default"] = default not in (None, parameter.empty) and bool not in kinds
    settings["validator"] = lambda kind, value: check_value(flag, value, annotation | None)
    kinds += [type(None)] if default is None else []
    extras = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Parameter)]
    annotated: Any = (functools.reduce(operator.or_, kinds), Parameter(help=text, **settings), *extras, renamed)
    return parameter.replace(annotation=Annotated[annotated])


def _split_names(may_be_single: bool, kind: object, tokens: Sequence[Token]) -> str | list[str]:
    """Split names at commas."""
    names = [name.strip() for name in tokens[0].value.split(",")]
    return names[0] if may_be_single and len(names) == 1 else names


def _parse_whole_number(kind: object, tokens: Sequence[Token]) -> int | str:
    """Parse a whole number, or keep the text for a later check, because Cyclopts would round 1.5."""
    text = tokens[0].value
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else text
