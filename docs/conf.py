"""How Sphinx builds the site: pages in Markdown, the reference from docstrings, everything from this checkout.

Sphinx and not zensical with mkdocstrings, which builds in a second: the docstrings are reStructuredText, with roles,
tables and literal blocks, as those of sentence-transformers are, and Sphinx renders them. Furo brings no font or script
from another host.
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

os.environ["COLUMNS"] = "88"  # of the help that is quoted

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
suppress_warnings = ["myst.header"]  # pages of results have headings of any depth

html_theme = "furo"
html_title = "simlte_st"
html_show_copyright = False
html_copy_source = False


def write_pages(app: Sphinx) -> None:
    """Make the pages that are made from something else: results, with a list of them, and the help of all commands."""
    folder = HERE / "results"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(RESULTS, folder, ignore=shutil.ignore_patterns("*.json", "*.parquet"))
    pages = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))
    about = "What has been measured. Each page names the command that makes it again, and the machine it was made on."
    (folder / "index.md").write_text(f"# Results\n\n{about}\n\n```{{toctree}}\n{chr(10).join(pages)}\n```\n", "utf-8")

    helps = [f"## simlte {name}\n\n```text\n{help_of(name)}```\n" for name in commands()]
    about = "What `--help` shows. Options have the names of the Python functions' keyword arguments."
    (HERE / "commands.md").write_text(f"# Commands\n\n{about}\n\n" + "\n".join(helps), encoding="utf-8")


def help_of(name: str) -> str:
    """Return what ``simlte NAME --help`` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main([*name.split(), "--help"])
    return printed.getvalue()


def change_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Lead links to ``benchmarks/results``, as they are in a checkout, to the copies on the site; leave tests out."""
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/results/", "](/results/", source[0])
    source[0] = re.sub(r"\s*\[`test_\w+`\]\([./\w]+\),?", "", source[0])


def check_pages(app: Sphinx, error: Exception | None) -> None:
    """Check that each page has the words of its source: Sphinx writes its own search.html over one."""
    if error or app.builder.name != "html":
        return
    for name in sorted(app.env.found_docs):
        page = html.unescape(Path(app.builder.get_outfilename(name)).read_text("utf-8"))
        texts = app.env.get_doctree(name).astext(), page + re.sub(r"<[^>]*>", "", page)  # some stand in attributes
        words, shown = (set(re.findall(r"\w{3,}", text)) for text in texts)
        if missing := sorted(words - shown):
            raise SphinxError(f"{name}: {len(missing)} of {len(words)} words are not on the page: {missing[:10]}")


def setup(app: Sphinx) -> None:
    """Connect them; Sphinx calls this."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", change_source)
    app.connect("build-finished", check_pages)
