"""``python -m kernelbounds``: the command line."""

from kernelbounds.cli import main

main()
