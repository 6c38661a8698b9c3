"""The search page of ``simlte serve``."""
