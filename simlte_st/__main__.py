"""Entry point of ``python -m simlte_st`` and, for several processes, ``torchrun -m simlte_st``."""

import sys

from simlte_st.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
