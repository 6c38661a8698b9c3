"""``python -m simlte_st`` is ``simlte``; so is ``torchrun -m simlte_st``, in several processes."""

import sys

from simlte_st.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
