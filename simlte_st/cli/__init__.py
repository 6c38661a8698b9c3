"""The ``simlte`` command: each command takes the options of the library's functions that it calls."""
