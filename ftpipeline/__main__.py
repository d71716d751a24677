"""`python -m ftpipeline` is the command line."""

from ftpipeline.cli.main import main

main()
