"""`python -m roofline`."""

import gc
import sys


def main() -> None:
    """The command line; Ctrl-C while it is still being loaded stops it as later."""
    # Of what is imported, and read of a large profile, next to nothing becomes garbage before the process ends: looking
    # for some, then and at the end, takes a tenth of `show`.
    gc.disable()
    try:
        try:
            from roofline.cli import main
        except KeyboardInterrupt:
            print("roofline: Stopped; nothing was written.", file=sys.stderr)
            sys.exit(130)
        main()
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    main()
