"""Train on natural language inference as TA-SBERT does, and evaluate."""
