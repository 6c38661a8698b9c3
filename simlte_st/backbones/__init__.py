"""Architectures that read long documents, behind one protocol; each lives in a room of its own."""
