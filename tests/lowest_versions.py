"""Print the lowest version of each dependency that setup.py allows, as pip constraints.

    python tests/lowest_versions.py > constraints-lowest.txt

torch is left out: it stays at the version of constraints.txt, because older ones come with several gigabytes of CUDA
libraries that a CI machine has no use for.
"""

from __future__ import annotations

import re
from pathlib import Path
from unittest import mock


def lowest_versions() -> list[str]:
    """Read setup.py and turn every ``name>=version`` of its install_requires into ``name==version``."""
    root = Path(__file__).parent.parent
    with mock.patch("setuptools.setup") as setup:
        exec(
            compile((root / "setup.py").read_text(encoding="utf-8"), "setup.py", "exec"),
            {"__file__": str(root / "setup.py")},
        )
    found = [
        re.match(r"([\w.-]+)>=([\w.]+)", requirement) for requirement in setup.call_args.kwargs["install_requires"]
    ]
    return [f"{match[1]}=={match[2]}" for match in found if match and match[1] != "torch"]


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
