"""`python -m sojourn`: the same as the command."""

from sojourn.cli.main import entry

if __name__ == "__main__":
    entry()
