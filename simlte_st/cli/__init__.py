"""The ``simlte`` command: one module a subcommand, each thin: parse, call, print."""
