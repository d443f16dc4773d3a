"""`python -m ordercast` is the command `ordercast`."""

from ordercast.cli.main import main

main()
