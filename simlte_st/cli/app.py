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
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter
from docstring_parser import DocstringStyle, parse

from simlte_st import __version__
from simlte_st.arguments import alternatives, check_value
from simlte_st.cli.terminal import in_options
from simlte_st.data.documents import read_documents
from simlte_st.data.sources import PLACES
from simlte_st.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from simlte_st.data.documents import DocumentReader

COMMANDS = {
    "train": "training", "encode": "documents", "index": "search", "search": "search", "link": "search",
    "serve": "search", "explore": "documents", "compare": "training", "evaluate": "training", "dedupe": "documents",
    "convert": "models", "export": "models", "models": "models", "demo": "training",
}  # fmt: skip
"""The module of each command, in the order of the help."""

EXAMPLES = (
    "simlte train my_documents --output my-model",
    "simlte index my-model my_documents --output my.index",
    'simlte search my.index "floods in the north"',
    "simlte train --help",
)

Source = Annotated[str, Parameter(required=True)]
"""One of the sources of documents; there must be at least one."""

_registered: dict[str, Command] = {}


@dataclass(frozen=True)
class Result:
    """What a command has to say.

    Attributes:
        text: For people; parameters in it are shown as options.
        values: The same as JSON values.
        notes: Lines for standard error.
        laid_out: Whether ``text`` is printed as it is, because it quotes documents.
    """

    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    laid_out: bool = False


class Options(dict[str, Any]):
    """The options that were given, by the names of parameters."""

    def of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return those that a function of the library takes."""
        taken = _parameters(function)
        progress = {"progress": not self.get("quiet")} if "progress" in taken else {}
        return {name: self[name] for name in taken if name in self} | progress

    def read(self, *source: str, **others: Any) -> DocumentReader:
        """Return a reader of one source or several, with the reading options."""
        return read_documents(one_or_several(source), **self.of(read_documents), **others)


@dataclass(frozen=True)
class Command:
    """A command; :func:`command` makes one.

    Attributes:
        name: What the user types; ``"models list"`` is an action of ``models``.
        function: What runs. Its docstring is the help: a summary, a description, ``Args:`` and ``Examples:``.
        takes: Functions or dataclasses of the library whose keyword arguments become options, by the heading of these
            in the help; ``""`` puts them beside the command's own.
        reads: Whether the command reads documents, and so has the options of ``read_documents``.
        without: Keyword arguments that are no options.
        named: Other names of options.
        words: Options by the names of parameters that only messages mention.
    """

    name: str
    function: Callable[..., Result | Iterator[Result]]
    takes: Mapping[str, Iterable[Callable[..., Any]]]
    reads: bool = False
    without: Collection[str] = ()
    named: Mapping[str, Parameter] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def flags(self) -> dict[str, str]:
        """The option or positional argument of each parameter, and what makes it False."""
        found = dict.fromkeys(("progress", "progress=False"), "--quiet")
        for name, parameter in self.composed.parameters.items():
            other = self.named.get(name, Parameter())
            positional = parameter.kind is not parameter.KEYWORD_ONLY
            dashed = f"--{name.replace('_', '-')}"
            found[name] = name.upper() if positional else next(iter(other.name or ()), dashed)
            if other.negative:
                found[f"{name}=False"] = next(iter(other.negative))
        return {**found, **self.words}

    @functools.cached_property
    def composed(self) -> inspect.Signature:
        """The signature of all that the command line takes."""
        own = list(inspect.signature(self.function).parameters.values())[1:]
        found = {each.name: _option(each, self.function, _OWN, self.named) for each in own}
        sources: list[tuple[Callable[..., Any], Group]] = [
            (function, Group(heading, sort_key=order) if heading else _OWN)
            for order, (heading, functions) in enumerate(self.takes.items(), start=1)
            for function in functions
        ]
        sources += [(read_documents, _READING)] if self.reads else []
        for function, group in sources:
            hidden = {*_HIDDEN, *self.without} | (_HIDDEN_OF_READING - set(self.named) if group is _READING else set())
            for each in _parameters(function).values():
                if each.name not in hidden and each.name not in found and _kinds(each.annotation):
                    own_group = _COMMON if each.name == "overwrite" else group
                    found[each.name] = _option(each, function, own_group, self.named)
        for each in inspect.signature(_common).parameters.values():
            found[each.name] = _option(each, _common, _COMMON, self.named)
        return inspect.Signature(sorted(found.values(), key=lambda each: each.kind))

    def app(self) -> App:
        """Return the command for Cyclopts, with its help."""

        def call(*arguments: Any, **options: Any) -> Any:
            return self(*arguments, **options)

        parameters = []
        for each in self.composed.parameters.values():
            [*_, told] = each.annotation.__metadata__
            shown = Parameter(help=self._in_options(told.help))
            parameters.append(each.replace(annotation=Annotated[each.annotation, shown]))
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.command = self  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        described, _, examples = inspect.cleandoc(self.function.__doc__ or "").partition("\n\nExamples:\n")
        paragraphs = described.partition("\n\nArgs:")[0].split("\n\n")
        text = self._in_options("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
        app = _app(self.name.split()[-1], text, inspect.cleandoc(examples).splitlines())
        app.default(call)
        return app

    def _in_options(self, text: str) -> str:
        """Return a text of a docstring with options in place of parameters, without its backticks."""
        return re.sub(r"``([^`]*)``", lambda each: in_options(each[1], self.flags).replace('"', ""), text)

    def __call__(self, *arguments: Any, **options: Any) -> Result | Iterator[Result]:
        """Run the command with what was given."""
        own = inspect.signature(self.function).parameters
        given = {name: value for name, value in options.items() if name in own}
        return self.function(Options(options), *arguments, **given)


def command(
    name: str, takes: Mapping[str, Iterable[Callable[..., Any]]] | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command of a function; ``settings`` are the other attributes of :class:`Command`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _registered[name] = Command(name, function, takes or {}, **settings)
        return function

    return register


def commands(word: str | None = None) -> dict[str, Command]:
    """Return the commands that begin with a word, or all; only their modules are imported."""
    for module in {word: COMMANDS[word]}.values() if word in COMMANDS else COMMANDS.values():
        importlib.import_module(f"simlte_st.cli.{module}")
    order = list(COMMANDS)
    found = {name: each for name, each in _registered.items() if word not in COMMANDS or name.split()[0] == word}
    return dict(sorted(found.items(), key=lambda each: order.index(each[0].split()[0])))


def build(word: str | None = None) -> App:
    """Return ``simlte`` with the commands that begin with a word, or with all."""
    text = "Adapt embedding models to documents without labels; encode, search and explore the documents."
    root = _app("simlte", text, EXAMPLES, version_flags=["--version"])
    for name, each in commands(word).items():
        *parents, _ = name.split()
        under = root
        for parent in parents:
            if parent not in {*under}:
                text = "List or remove the named models on this machine."
                under.command(_app(parent, text, ("simlte models list", "simlte models remove papers")))
            under = under[parent]
        under.command(each.app())
    return root


def one_or_several(source: Sequence[str]) -> str | list[str]:
    """Return one source as it is and several as a list, all of which must be there."""
    for each in source if len(source) > 1 else ():  # the reader could take a name for a text
        if not (each.startswith("hub:") or "://" in each or os.path.lexists(each)):
            raise DataError(f"There is no file or folder {each!r}.")
    return source[0] if len(source) == 1 else list(source)


_OWN, _READING, _COMMON = Group("Options", sort_key=0), Group("Reading", sort_key=50), Group("Common", sort_key=60)
_PLACES = f"{PLACES[0].upper()}{PLACES[1:]}; or several of these"
_HIDDEN = {"config", "progress"}
_HIDDEN_OF_READING = {"label_column", "metadata", "stream"}


def _common(
    *, quiet: bool = False, json: bool = False, verbose: bool = False, debug: bool = False
) -> None:  # fmt: skip
    """Take the options of every command.

    Args:
        quiet: Show no progress bars.
        json: Print the result as one JSON object, and nothing else.
        verbose: Show the libraries' messages too.
        debug: Show where in the code an error comes from.
    """


def _app(name: str, text: str, examples: Sequence[str], **options: Any) -> App:
    lines = "".join(f"\n  {each}" for each in examples)
    options = {"version_flags": [], "sort_key": [*COMMANDS, name].index(name), **options}
    return App(
        name=name, help=text, help_epilogue=f"Examples:\n{lines}", help_format="plaintext", version=__version__,
        help_flags=["--help", "-h"], **options,
    )  # fmt: skip


@functools.cache
def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the keyword parameters of a function, or all of a dataclass, with their annotations resolved."""
    hints, is_class = get_type_hints(function, include_extras=True), isinstance(function, type)
    return {
        name: each.replace(kind=each.KEYWORD_ONLY, annotation=hints[name], default=None if is_class else each.default)
        for name, each in inspect.signature(function).parameters.items()
        if is_class or each.kind is each.KEYWORD_ONLY
    }


@functools.cache
def _helps(function: Callable[..., Any]) -> dict[str, str]:
    """Return what a docstring says about each argument."""
    described = parse(inspect.cleandoc(function.__doc__ or ""), DocstringStyle.GOOGLE).params
    texts = {each.arg_name.lstrip("*"): " ".join((each.description or "").split()) for each in described}
    return {name: text.replace("{places}", _PLACES) for name, text in texts.items()}


def _kinds(annotation: Any) -> list[Any]:
    """Return the types that a word of the command line can have; none for what only Python can pass."""
    kinds = [kind for kind, _ in alternatives(annotation) if kind is not type(None)]
    simple = [kind for kind in kinds if kind in (bool, int, float) or get_origin(kind) is Literal]
    texts = any(kind in (str, Any, Sequence[str]) for kind in kinds)
    return [*simple, str] if texts else simple


def _option(
    parameter: inspect.Parameter, function: Callable[..., Any], group: Group, named: Mapping[str, Parameter]
) -> inspect.Parameter:
    """Return a parameter as Cyclopts takes it."""
    annotation, name = parameter.annotation, parameter.name
    if isinstance(annotation, str):  # the command's own
        annotation = get_type_hints(function, include_extras=True)[name]
    kinds = _kinds(annotation)
    keyword = parameter.kind is parameter.KEYWORD_ONLY
    options: dict[str, Any] = {"group": group} if keyword else {"name": name.upper()}
    if keyword and annotation in (list[str], list[str] | None):
        kinds, options["consume_multiple"] = [list[str]], 1
    elif any(kind == Sequence[str] for kind, _ in alternatives(annotation)):
        single = any(kind is str for kind, _ in alternatives(annotation))
        kinds, options["n_tokens"] = [list[str], *([str] if single else [])], 1
        options["converter"] = lambda kind, tokens: _names(tokens[0].value, single)
    elif int in kinds:  # Cyclopts would round 1.5
        options["converter"] = lambda kind, tokens: _whole(tokens[0].value, kinds)
    options["negative"] = () if parameter.default is False or bool not in kinds else None
    shown = parameter.default not in (None, parameter.empty) and bool not in kinds
    options |= {"show_default": shown, "validator": _validator(name, annotation)}
    kinds += [type(None)] if parameter.default is None else []
    extra = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Parameter)]
    extra += [named[name]] if name in named else []
    extra.append(Parameter(help=_helps(function).get(name, "")))
    described: Any = (functools.reduce(operator.or_, kinds), Parameter(**options), *extra)
    return parameter.replace(
        annotation=Annotated[described],
        default=parameter.default if keyword or parameter.default is not parameter.empty else parameter.empty,
    )


def _names(text: str, single: bool) -> str | list[str]:
    names = [name.strip() for name in text.split(",")]
    return text if single and len(names) == 1 else names


def _whole(text: str, kinds: Sequence[Any]) -> int | str:
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    if text in words:
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number{''.join(f' or {word!r}' for word in words)}.") from None


def _validator(name: str, annotation: Any) -> Callable[[Any, Any], None]:
    def check(kind: Any, value: Any) -> None:
        try:
            if value is not None:  # an option that is not given
                check_value(name, value, annotation)
        except ConfigurationError as error:
            words = str(error).partition(": must be ")[2]
            raise ValueError(f"It must be {words}") from error

    return check
