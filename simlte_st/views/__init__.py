"""Views of documents for training, the corpus on disk, and near-duplicates."""
