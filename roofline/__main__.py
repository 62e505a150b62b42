"""Run the command line: `python -m roofline`."""

import gc
import sys


def main() -> None:
    """Run the command line; Ctrl-C stops it also while it is being loaded."""
    # Next to none of the imported modules and of a large profile becomes garbage before the process ends: collecting,
    # then and at the end, takes a tenth of `show`.
    gc.disable()
    try:
        try:
            from roofline.cli import main
        except KeyboardInterrupt:
            print("roofline: Stopped; nothing was written.", file=sys.stderr)
            sys.exit(130)
        run_program = main()
    except BaseException:  # mostly SystemExit
        gc.freeze()
        gc.enable()
        raise
    gc.enable()
    run_program()


if __name__ == "__main__":
    main()
