"""Build the models that ship with the package: ``python -m benchmarks.build_model``."""
