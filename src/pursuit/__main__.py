"""`python -m pursuit` is the command `pursuit`."""

if __name__ == "__main__":
    from pursuit.cli import app

    app(prog_name="pursuit")
