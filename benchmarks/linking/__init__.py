"""Link short posts to long articles: AST and its baselines."""
