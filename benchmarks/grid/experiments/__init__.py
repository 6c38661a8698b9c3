"""The experiments, a module a kind. Each plans its cells; a cell is one number, or one table, of one system."""
