"""The main job, offline: train a model on documents without labels, and say what that gained. It is ``simlte demo``.

    python examples/demo.py --output simlte-demo

``run_demo`` in ``simlte_st/cli/training.py`` has what it does, from top to bottom. Base model and documents come from
PyPI packages (the extra ``demo``). The classes of the articles are never shown to training; they serve to measure, on
articles that training has not seen.
"""

from __future__ import annotations

import sys

from simlte_st.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["demo", *sys.argv[1:]]))
