"""The grid of the papers' experiments: what the papers print, and the figures it draws."""
