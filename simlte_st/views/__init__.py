"""Draw views of documents for training, store the corpus on disk, and remove near-duplicates."""
