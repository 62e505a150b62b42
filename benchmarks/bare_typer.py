"""A typer program that does nothing: what `roofline --help` is compared with."""

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def one(name: str, number: int = 1) -> None:
    """Do nothing."""


@app.command()
def two(name: str) -> None:
    """Do nothing either."""


if __name__ == "__main__":
    app()
