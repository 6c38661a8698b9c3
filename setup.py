"""For tools that need a setup.py; all settings are in pyproject.toml."""

from setuptools import setup

setup()
