"""Print the lowest version of each dependency that pyproject.toml allows, as pip constraints.

    python tests/lowest_versions.py > constraints-lowest.txt

torch stays at the version in constraints.txt: older ones install several gigabytes of CUDA libraries, which CI does not
need.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def lowest_versions() -> list[str]:
    """Return ``name==version`` for each requirement ``name>=version``."""
    project = Path(__file__).parent.parent / "pyproject.toml"
    requirements = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    matches = [re.match(r"([\w.-]+)>=([\w.]+)", requirement) for requirement in requirements]
    return [f"{match[1]}=={match[2]}" for match in matches if match and match[1] != "torch"]


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
