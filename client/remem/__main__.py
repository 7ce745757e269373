"""`python -m remem` is the command `remem`."""

from remem.cli.main import main

main()
