"""Files that tests of reading make, and a short way to read them."""

from __future__ import annotations

import gzip
import importlib
import sys
from pathlib import Path
from typing import Any

from simlte_st.data.documents import read_documents

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
zstd = importlib.import_module(ZSTD)


def texts(source: Any, **settings: Any) -> list[str]:
    return [document.text for document in read_documents(source, **settings)]


def packed(path: Path, data: bytes) -> Path:
    """Write a file, compressed as its name says."""
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    path.write_bytes(data)
    return path
