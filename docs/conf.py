"""Sphinx configuration: pages in Markdown, and the reference from docstrings.

Sphinx rather than the faster zensical with mkdocstrings, because the docstrings are reStructuredText with roles, tables
and literal blocks, as in sentence-transformers. Furo loads no font or script from another host.
"""

import contextlib
import html
import io
import os
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

os.environ["COLUMNS"] = "88"  # width of the quoted help

import simlte_st
from simlte_st.cli.app import commands
from simlte_st.cli.main import main

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"

project = "simlte_st"
author = "The simlte_st authors"
release = simlte_st.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_ivar = True
napoleon_custom_sections = ["Requirements", "Recommendations", "Relations", "Inputs"]
suppress_warnings = ["myst.header"]  # result pages skip heading levels

html_theme = "furo"
html_title = "simlte_st"
html_show_copyright = False
html_copy_source = False


def write_pages(app: Sphinx) -> None:
    """Write the generated pages: results, their index, and the help of all commands."""
    folder = HERE / "results"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(RESULTS, folder, ignore=shutil.ignore_patterns("*.json", "*.parquet"))
    pages = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))
    about = "All measurements. Each page names the command that repeats it, and the machine."
    (folder / "index.md").write_text(f"# Results\n\n{about}\n\n```{{toctree}}\n{chr(10).join(pages)}\n```\n", "utf-8")

    helps = [f"## simlte {name}\n\n```text\n{help_of(name)}```\n" for name in commands()]
    about = "The `--help` of each command. Options are named after the keyword arguments in Python."
    (HERE / "commands.md").write_text(f"# Commands\n\n{about}\n\n" + "\n".join(helps), encoding="utf-8")


def help_of(name: str) -> str:
    """Return what ``simlte NAME --help`` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main([*name.split(), "--help"])
    return printed.getvalue()


def change_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Point links to ``benchmarks/results`` at the copies on the site, and remove links to tests."""
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/results/", "](/results/", source[0])
    source[0] = re.sub(r"\s*\[`test_\w+`\]\([./\w]+\),?", "", source[0])


def check_pages(app: Sphinx, error: Exception | None) -> None:
    """Check that each page contains the words of its source; Sphinx would overwrite a page named search."""
    if error or app.builder.name != "html":
        return
    for name in sorted(app.env.found_docs):
        page = html.unescape(Path(app.builder.get_outfilename(name)).read_text("utf-8"))
        texts = app.env.get_doctree(name).astext(), page + re.sub(r"<[^>]*>", "", page)  # some are in attributes
        words, shown = (set(re.findall(r"\w{3,}", text)) for text in texts)
        if missing := sorted(words - shown):
            raise SphinxError(f"{name}: {len(missing)} of {len(words)} words are not on the page: {missing[:10]}")


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", change_source)
    app.connect("build-finished", check_pages)
