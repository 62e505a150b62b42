"""`python -m roofline`."""

from roofline.cli import main

main()
