"""How the models that come with the package were made: ``python -m benchmarks.build_model``."""
