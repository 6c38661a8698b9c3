"""The page of ``simlte serve``: an index searched in a browser."""
