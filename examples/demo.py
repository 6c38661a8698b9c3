"""Run ``simlte demo``: train a model on documents without labels, and measure the improvement, offline.

    python examples/demo.py --output simlte-demo

The code is ``run_demo`` in ``simlte_st/cli/commands.py``. Base model and documents come from PyPI packages (extra
``demo``). Training never sees the classes of the articles; they measure the result on held-out articles.
"""

from __future__ import annotations

import sys

from simlte_st.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["demo", *sys.argv[1:]]))
