"""`python -m ldprecover_cli` is the command `ldprecover`."""

from ldprecover_cli import main

if __name__ == "__main__":
    main()
