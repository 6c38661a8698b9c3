"""Read documents from any source, and report what was read and skipped."""
