"""Split texts into sentences, tokens and words, in any language."""
