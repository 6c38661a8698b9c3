"""From anything that a user may pass to documents, with a report of what was read and skipped."""
