"""The papers' analyses, each with a command, and evaluators for their tasks."""
