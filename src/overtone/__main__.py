"""`python -m overtone` is the command line."""

from overtone.cli.app import main

if __name__ == "__main__":
    main()
