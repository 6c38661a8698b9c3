"""The papers' data sets: where to get them, under which licence, in which form.

python -m benchmarks.data
"""

from __future__ import annotations

from benchmarks.datasets import SETS


def main() -> None:
    for name, known in SETS.items():
        print(f"{name}: {known.where_to_get()}\n")


if __name__ == "__main__":
    main()
