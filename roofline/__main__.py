"""`python -m roofline`."""

import sys


def main() -> None:
    """The command line; Ctrl-C while it is still being loaded stops it as later."""
    try:
        from roofline.cli import main
    except KeyboardInterrupt:
        print("roofline: Stopped; nothing was written.", file=sys.stderr)
        sys.exit(130)
    main()


if __name__ == "__main__":
    main()
