"""Sentences, tokens and words of a text, in any language."""
