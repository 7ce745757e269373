"""The command `remem`: arguments in, output and exit status out; a file a command group, no logic."""
