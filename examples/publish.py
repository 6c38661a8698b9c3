"""Publish: a model that ``simlte train`` made goes to the Hugging Face Hub with its card.

python examples/publish.py my-model OWNER/NAME --upload

Without ``--upload`` nothing leaves this machine: the script shows the card and the files of the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simlte_st import SentenceTransformer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder that `simlte train` wrote")
    parser.add_argument("repository", nargs="?", default="OWNER/NAME")
    parser.add_argument("--upload", action="store_true", help="upload (needs `hf auth login`)")
    parser.add_argument("--public", action="store_true", help="for everybody to see")
    arguments = parser.parse_args()

    if arguments.upload:
        model = SentenceTransformer(arguments.model, device="cpu")
        print("Uploaded:", model.push_to_hub(arguments.repository, private=not arguments.public))
        return
    print((arguments.model / "README.md").read_text(encoding="utf-8"))
    print(f"To {arguments.repository} would go:")
    for path in sorted(path for path in arguments.model.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size:>12,} bytes  {path.relative_to(arguments.model)}")


if __name__ == "__main__":
    main()
