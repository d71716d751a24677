"""The `ftpipeline` command, and `python -m ftpipeline`."""

import sys

_INTERRUPTED = 130  # as shells say of what SIGINT has ended


def main() -> None:
    """Run the command line; from the first import on, a Ctrl-C that nobody answers is one line."""
    try:
        from ftpipeline.cli.main import main as run  # takes seconds with all that it imports: a person may think again

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped; run again\n")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
