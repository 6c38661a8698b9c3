"""Training on natural language inference as TA-SBERT does, and what it is measured by."""
