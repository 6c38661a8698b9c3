"""Entry point of the ``simlte`` command."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TextIO, cast

from simlte_st import __version__
from simlte_st.cli.messages import OptionFormatter, note
from simlte_st.cli.parser import CommandParser
from simlte_st.cli.terminal import PrintableStream
from simlte_st.distributed import launched, shows
from simlte_st.errors import Interrupted, SimlteError

COMMANDS = (
    "train", "encode", "index", "search", "link", "serve", "explore", "compare", "evaluate", "dedupe", "convert",
    "export", "models", "demo",
)  # fmt: skip
"""Modules of this package with ``add_parser(subparsers)`` and ``run(arguments) -> int``, in the order of the help."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def build_parser() -> CommandParser:
    """Return the parser of ``simlte`` with all its commands."""
    parser = CommandParser(
        prog="simlte",
        description="Adapt embedding models to documents without labels; encode, search and explore the documents.",
        examples=(
            "simlte train my_documents --output my-model",
            "simlte index my-model my_documents --output my.index",
            'simlte search my.index "floods in the north"',
            "simlte train --help",
        ),
    )
    parser.add_argument("--version", action="version", version=f"simlte-st {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"simlte_st.cli.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    speaks = launched()[0] == 0  # in distributed training only rank 0 prints
    with (
        open(os.devnull, "w", encoding="utf-8") as silence,
        contextlib.redirect_stdout(cast("TextIO", PrintableStream(sys.stdout)) if speaks else silence),
        contextlib.redirect_stderr(cast("TextIO", PrintableStream(sys.stderr)) if speaks else silence),
    ):
        words, parser = list(sys.argv[1:] if argv is None else argv), build_parser()
        if not words:
            parser.print_help()
            return 1  # as git does
        return _run(parser.parse_args(words))


def _run(arguments: argparse.Namespace) -> int:
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(OptionFormatter(arguments.flags))
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    logging.getLogger("simlte_st").setLevel(logging.DEBUG if arguments.verbose else logging.INFO)
    if not arguments.verbose:
        _quiet_libraries()
    try:
        with _terminated_as_interrupted():
            return int(arguments.run(arguments))
    except KeyboardInterrupt as error:
        _tell(error, str(error) or "simlte: stopped.", arguments)
        return 128 + error.number if isinstance(error, Interrupted) else INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, such as head, has closed it. Python would raise once more when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0  # it has what it wanted
    except Exception as error:
        if arguments.debug:
            raise
        _tell(error, f"simlte: {_message(error)}", arguments)
        return 1


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Have SIGTERM, which ``kill`` and schedulers send, stop a command as Ctrl-C does: it says what is kept."""
    process = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a child that inherited the handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise Interrupted("simlte: stopped.", signal.Signals(number))

    if threading.current_thread() is not threading.main_thread() or launched()[1] > 1:
        yield  # of several processes, the launcher may end this one because another has failed
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(error: BaseException, text: str, arguments: argparse.Namespace) -> None:
    """Print what ended the command; of several processes that end with it, only one prints."""
    rank, processes = launched()
    if processes == 1 or shows(error):
        with contextlib.redirect_stderr(sys.__stderr__ if rank else sys.stderr):
            note(text, arguments)


def _message(error: Exception) -> str:
    """Return what went wrong: our own message, the system's (such as a full disk), or that this is a bug."""
    if isinstance(error, SimlteError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}" + (f": {error.filename}" if error.filename else "")
    return (
        f"{type(error).__name__}: {error}\nThis should not happen. Run the command with --debug to see where it does."
    )


def _quiet_libraries() -> None:
    """Switch off the libraries' messages and progress bars, which would stand between ours, once they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
