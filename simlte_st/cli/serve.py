"""``simlte serve``: an index searched in a browser."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from simlte_st.cli.arguments import add_arguments
from simlte_st.cli.options import number
from simlte_st.cli.search import add_shown_arguments, check_columns

ADDRESS = "127.0.0.1"
"""Where it listens: nobody else's machine reaches it."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "serve",
        help="search an index in a browser",
        description="Serve a page that only this machine can open: search with reasons and filters, and documents "
        "beside their nearest ones. Ctrl-C ends it.",
        examples=(
            "simlte serve articles.index",
            "simlte serve articles.index --title headline --show section,year",
            "simlte serve articles.index --port 8600",
        ),
    )
    add_arguments(parser, "index", "--model")
    add_shown_arguments(parser, "all")
    parser.add_argument("--port", type=number(int, most=65535), default=8501, metavar="N", help="default: %(default)s")
    add_arguments(parser, "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from simlte_st.extras import check_installed, require
    from simlte_st.search.settings import check_encoder, read_settings

    for package in ("streamlit", "lancedb"):
        check_installed(package, "serve", "simlte serve")
    folder = Path(arguments.index)
    check_encoder(folder, read_settings(folder), arguments.model)
    cli = require("streamlit.web.cli", "serve", "simlte serve")
    from simlte_st.page import __file__ as package
    from simlte_st.page.search_page import open_index

    page = {"folder": arguments.index, "model": arguments.model, "title": arguments.title, "show": arguments.show}
    index, turns = open_index(arguments.index, arguments.model)  # what is wrong is said here, before there is a page
    check_columns(index.columns, arguments)
    # Streamlit would ask a server of Amazon for this machine's address when another site's page knocks.
    require("streamlit.net_util", "serve", "simlte serve").get_external_ip = lambda: None  # type: ignore[attr-defined]
    print(f"{len(index):,} documents at http://{ADDRESS}:{arguments.port} (Ctrl-C ends it)", flush=True)
    os.environ["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"  # older ones know no such option, and show it
    script = str(Path(package).with_name("__main__.py"))
    cli.main(
        ["run", script, *streamlit_options(arguments.port), "--", json.dumps(page)],
        prog_name="simlte serve",
        standalone_mode=False,
        color=False,  # the terminal's commands do not pass our output
    )
    turns.end()  # a thread that Python's end meets within PyTorch would abort the process
    open_index.clear()
    return 0


def streamlit_options(port: int) -> list[str]:
    """Return the options of ``streamlit run``: this machine only, and nothing that is not part of the page."""
    options = {
        "server.address": ADDRESS,
        "server.port": port,
        "server.headless": "true",
        "server.fileWatcherType": "none",  # it would look through all that torch has loaded
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "logger.level": "warning",
        # Streamlit's red makes a field that is written in look like an error. One colour for both would end dark mode.
        "theme.light.primaryColor": "#2f7fd8",
        "theme.dark.primaryColor": "#2f7fd8",
    }
    return [f"--{name}={value}" for name, value in options.items()]
