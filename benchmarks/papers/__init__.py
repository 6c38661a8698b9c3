"""What the papers look at and how they judge: analyses with a command each, and evaluators for their tasks."""
