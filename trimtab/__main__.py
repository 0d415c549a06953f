"""`python -m trimtab` is `trimtab`."""

from trimtab.command import main

if __name__ == "__main__":
    main()
