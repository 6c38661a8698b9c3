"""Run the ``simlte`` command: parsing, printing, errors and signals."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import TextIO, cast

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError
from rich.console import Console

from simlte_st.cli.app import Command, Result, build
from simlte_st.cli.terminal import OptionFormatter, PrintableStream, as_json, in_options, terminal_width, wrap_text
from simlte_st.distributed import launcher_rank, shows
from simlte_st.errors import Interrupted, SimlteError
from simlte_st.files import to_json

_logger = logging.getLogger("simlte_st")

_DASH = " -"  # stands in for "-", which Cyclopts would parse as an option


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    is_first = launcher_rank()[0] == 0  # in distributed training only rank 0 prints
    with (
        open(os.devnull, "w", encoding="utf-8") as silence,
        # A closed stream is None.
        contextlib.redirect_stdout(cast("TextIO", PrintableStream(sys.stdout or silence)) if is_first else silence),
        contextlib.redirect_stderr(cast("TextIO", PrintableStream(sys.stderr or silence)) if is_first else silence),
    ):
        words = [_DASH if word == "-" else word for word in (sys.argv[1:] if argv is None else argv)]
        # No colours, because their codes would be escaped like other control characters.
        console = Console(width=min(terminal_width(), 100), color_system=None, highlight=False)
        try:
            call, bound, _ = build().parse_args(words, exit_on_error=False, print_error=False, console=console)
        except CycloptsError as error:
            program = " ".join(["simlte", *(error.command_chain or ())])
            message = f"{program}: error: {_parse_problem(error, words)}"
            print(wrap_text(f"{message}\n{program} --help lists all arguments, with examples."), file=sys.stderr)
            return 2
        if command := getattr(call, "command", None):
            options = {name: _restore_dash(value) for name, value in bound.kwargs.items()}
            return _run(command, [*map(_restore_dash, bound.args)], options)
        call(*bound.args, **bound.kwargs)  # prints help or the version
        return int(not words)  # as git does


def _parse_problem(error: CycloptsError, words: Sequence[str]) -> str:
    """Describe why the arguments cannot be parsed."""
    problem = getattr(error, "exception_message", "") or str(error)  # our own message for a value out of range
    if isinstance(error, UnusedCliTokensError):
        problem = f"Too many arguments: {' '.join(error.unused_tokens or ())}. Put a text of several words in quotes."
    option = isinstance(error, UnknownOptionError) and (error.token.keyword or error.token.value)
    if option and "--" in words and any(word.startswith(option) for word in words[words.index("--") :]):
        return f"{option}: options must come before --."
    if any(word.startswith("-") and " " in word.strip() for word in words):
        return f"{problem} Write -- before a text that begins with -."
    return problem


def _restore_dash(value: object) -> object:
    """Replace the stand-in for "-" in a parsed value."""
    return [*map(_restore_dash, value)] if isinstance(value, list) else "-" if value == _DASH else value


def _run(command: Command, arguments: Sequence[object], options: Mapping[str, object]) -> int:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OptionFormatter(command.flags))
    # Some libraries, such as huggingface_hub, print their own log lines.
    handler.addFilter(lambda record: not logging.getLogger(record.name.partition(".")[0]).handlers)
    verbose, quiet = options.get("verbose"), options.get("quiet") and not options.get("verbose")
    logging.basicConfig(level=logging.ERROR if quiet else logging.WARNING, handlers=[handler])
    _logger.setLevel(logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO)
    if not verbose:
        # Libraries read these on import; without them, their messages and progress bars would mix with ours.
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        os.environ.setdefault("DATASETS_VERBOSITY", "critical")  # our errors contain the causes
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        with _sigterm_as_interrupt():
            output = command(*arguments, **options)
            for result in [output] if isinstance(output, Result) else output:
                _print_result(result, command.flags, bool(options.get("json")))
            return result.status
    except KeyboardInterrupt as error:
        _print_error(error, str(error) or "simlte: stopped.", command.flags)
        return 128 + getattr(error, "number", signal.SIGINT)  # as in shells
    except BrokenPipeError:
        # The reader of our output, such as head, has closed it. Flushing stdout at exit would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if options.get("debug"):
            raise
        _print_error(error, f"simlte: {_error_message(error)}", command.flags)
        return 2 if command.matches and options.get("quiet") else 1


def _print_result(result: Result, flags: Mapping[str, str], as_values: bool) -> None:
    with_notes = _logger.isEnabledFor(logging.INFO)
    notes = [*result.notes] if with_notes else []
    if result.reading:
        notes += [result.reading.summary()] if with_notes else result.reading.troubles("skipped")
    for note in notes:
        print(wrap_text(in_options(note, flags)), file=sys.stderr)
    if as_values:
        values = {**result.values, **({"read": result.reading.to_dict()} if result.reading else {})}
        text = as_json(to_json(values)) if values else ""
    else:
        text = result.text if result.laid_out else wrap_text(in_options(result.text, flags))
    if text:
        print(text, flush=True)


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM, which ``kill`` and schedulers send, like Ctrl-C."""
    process = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a child that inherited the handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise Interrupted("simlte: stopped.", signal.Signals(number))

    if launcher_rank()[1] > 1:
        yield  # the launcher may end this process because another one has failed
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_error(error: BaseException, text: str, flags: Mapping[str, str]) -> None:
    """Print an error, only once if several processes fail with it."""
    rank, processes = launcher_rank()
    if processes == 1 or shows(error):
        with contextlib.redirect_stderr(sys.__stderr__ if rank else sys.stderr):
            print(wrap_text(in_options(text, flags)), file=sys.stderr)


def _error_message(error: Exception) -> str:
    """Return our own message, the system's message (for example, for a full disk), or a request to report a bug."""
    if isinstance(error, SimlteError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}" + (f": {error.filename}" if error.filename else "")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # the latter is torch's
        return f"Out of memory: use a smaller batch size, or the CPU. {error}".rstrip()
    return f"{type(error).__name__}: {error}\nThis is a bug. Please report it with the traceback that --debug shows."
