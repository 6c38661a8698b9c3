"""Run ``simlte`` as ``python -m simlte_st``, or in several processes with ``torchrun -m simlte_st``."""

import sys

from simlte_st.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
