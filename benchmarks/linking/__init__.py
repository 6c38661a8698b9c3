"""Linking short posts to long articles: AST and what it is compared with."""
