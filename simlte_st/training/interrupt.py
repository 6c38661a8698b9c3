"""Ctrl-C and SIGTERM: a run ends after the step that it is in, with a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from simlte_st.distributed import is_main, largest, world


class InterruptCallback(TrainerCallback):
    """Turns Ctrl-C and SIGTERM into: finish this step, write a checkpoint, stop. A second signal stops at once.

    SIGTERM is what ``kill`` sends, and a scheduler that takes the machine away. Of several processes all stop after the
    same step, whichever of them got the signal.

    Attributes:
        interrupted: The signal that stopped the run; None where none did.
    """

    def __init__(self) -> None:
        self.interrupted: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self._process = os.getpid()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take over the signals, where Python lets us: in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._process = os.getpid()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: not Python's, which could not give it back
                self._previous[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A child, such as a data loading worker, that got the handler from us. Ctrl-C reaches it as it does us;
            # SIGTERM may be meant for it alone, and ends it.
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

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Ask for a checkpoint and the end."""
        number = largest(self.interrupted or 0)
        if number:
            self.interrupted = signal.Signals(number)
            if world() > 1 and is_main():
                self._announce()
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Return the signals back."""
        self.restore()

    def restore(self) -> None:
        """Return the signals back to whoever had them."""
        while self._previous:
            signal.signal(*self._previous.popitem())
