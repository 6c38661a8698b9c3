"""The papers' analyses as commands, and evaluators for their tasks."""
