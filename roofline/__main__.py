"""Run the command line: `python -m roofline`."""

import gc
import os
import sys

from roofline.standard_error import tell


def main() -> None:
    """Run the command line; Ctrl-C stops it also while it is being loaded."""
    # Next to none of the imported modules and of a large profile becomes garbage before the process ends: collecting,
    # then and at the end, takes a tenth of `show`.
    gc.disable()
    _open_standard_streams()
    try:
        try:
            from roofline.cli import main
        except KeyboardInterrupt:
            tell("roofline: Stopped; nothing was written.")
            sys.exit(130)
        run_program = main()
    except BaseException:  # mostly SystemExit
        gc.freeze()
        gc.enable()
        raise
    gc.enable()
    run_program()


def _open_standard_streams() -> None:
    """Open what is closed of standard input, output and error: the next file would be taken for it, and written to."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            os.set_inheritable(descriptor, True)


if __name__ == "__main__":
    main()
