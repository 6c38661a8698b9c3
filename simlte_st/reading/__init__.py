"""Read documents from any source, and report how many were read and skipped."""
