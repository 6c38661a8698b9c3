"""The MCP server as agents start it: in a process of its own, called by the SDK's client."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from support import make_document

from simlte_st.data import Document
from simlte_st.search import Index
from simlte_st.search.mcp_server import EXCERPT

START = [sys.executable, "-c", "import sys; from simlte_st.cli.main import main; sys.exit(main())", "mcp"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@asynccontextmanager
async def serve(arguments: list[str], over_http: bool) -> AsyncIterator[Client]:
    """Start the server, and yield a client."""
    if not over_http:
        command, *rest = [*START, *arguments]
        async with Client(stdio_client(StdioServerParameters(command=command, args=rest, env=ENVIRONMENT))) as client:
            yield client
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([*START, *arguments, "--port", str(port)], env=ENVIRONMENT)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None
            await asyncio.sleep(0.2)
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            yield client
    finally:
        process.terminate()
        assert process.wait() in (0, 143)


@pytest.mark.parametrize("over_http", [False, True], ids=["stdio", "http"])
def test_tools_search_read_and_compare(over_http: bool, parted: Index, encoder_path: Path) -> None:
    wide = {f"c{number:02}": "w" * 5_000 for number in range(40)}
    long = Document("long", " ".join(map(make_document, range(100))), metadata={"year": 1990, **wide})
    parted.add([long], progress=False)
    arguments = [str(parted.folder), "--model", str(encoder_path), *["--rerank", str(encoder_path)] * over_http]
    files = {path: path.stat().st_mtime_ns for path in parted.folder.rglob("*")}

    async def use() -> None:
        async with serve(arguments, over_http) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert [*tools] == ["search", "read", "similar"]
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                values = result.structured_content or {}
                return result.content[0].text if result.is_error else values.get("result", values)

            found = await call("search", query="Ba bun bis.", top_k=4, where="year > 2002", rerank=over_http)
            model = str(encoder_path) if over_http else None
            expected = parted.search("Ba bun bis.", top_k=4, where="year > 2002", rerank=model)
            assert [hit["id"] for hit in found] == [hit.id for hit in expected]
            assert [hit["metadata"]["year"] > 2002 for hit in found] == [True] * 4
            similar = await call("similar", id="d3", top_k=3)
            assert [hit["id"] for hit in similar] == [hit.id for hit in parted.link(["d3"], top_k=3)]
            [hit] = await call("search", query=long.text[-200:], top_k=1, where="id = 'long'")
            assert sum(map(len, map(str, hit["metadata"].values()))) < 16 * 210
            around = await call("read", id="long", passage=hit["passage"])
            assert around["text"] == long.text[around["start"] : around["end"]]
            assert hit["passage"].removesuffix(" …") in around["text"]
            first = await call("read", id="long")
            assert len(first["text"]) == first["end"] == EXCERPT < first["length"]
            assert (await call("read", id="long", start=first["end"]))["start"] == EXCERPT

            assert "no document with the id" in await call("similar", id=str(encoder_path / "config.json"))
            assert "does not contain this passage" in await call("read", id="d1", passage="quagga")
            assert "No field named nope" in await call("search", query="ba", where="nope > 1")
            assert "less than or equal to 30" in await call("search", query="ba", top_k=31)

    asyncio.run(asyncio.wait_for(use(), timeout=120))
    assert {path: path.stat().st_mtime_ns for path in parted.folder.rglob("*")} == files
