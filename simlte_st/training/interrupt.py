"""Ctrl-C and SIGTERM: a run ends after the current step, with a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerState

from simlte_st.distributed import is_main, largest, world


class InterruptCallback(TrainerCallback):
    """On Ctrl-C or SIGTERM, finishes the step, writes a checkpoint and stops. A second signal stops at once.

    SIGTERM comes from ``kill`` and from schedulers. Of several processes all stop after the same step, whichever of
    them got the signal.

    Attributes:
        interrupted: The signal that stopped the run, or None.
    """

    def __init__(self) -> None:
        self.interrupted: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self._process = os.getpid()

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Handle the signals, if this is the main thread, where Python allows it."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._process = os.getpid()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: not Python's, which could not restore it
                self._previous[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A child, such as a data loading worker, that inherited the handler. Ctrl-C reaches both processes; SIGTERM
            # may be meant for the child alone, and ends it.
            if number == signal.SIGTERM:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        self.interrupted = signal.Signals(number)
        self.restore()  # the next one is not ours
        if world() == 1:  # of several, a launcher may end this one because another has failed
            self._announce()

    def _announce(self) -> None:
        again = "Ctrl-C again" if self.interrupted == signal.SIGINT else "Another signal"
        tqdm.write(f"Stopping after this step, with a checkpoint. {again} stops at once.", file=sys.stderr)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> Any:
        """Request a checkpoint and the end."""
        number = largest(self.interrupted or 0)
        if number:
            self.interrupted = signal.Signals(number)
            if world() > 1 and is_main():
                self._announce()
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Restore the handlers."""
        self.restore()

    def restore(self) -> None:
        """Restore the handlers of before."""
        while self._previous:
            signal.signal(*self._previous.popitem())
