"""Group of commands that passes exceptions of a user's class through typer.

typer ends the program on SystemExit, on its own Exit, and on an OSError of a closed pipe. Raised in
a class of the user, they are an error of that class.
"""

from typing import Any

from typer.core import TyperGroup


class UserError(Exception):
    """Exception of a discipline, congestion control or source that is written in Python."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Commands(TyperGroup):
    """Group of commands that raises exceptions of a user's class as `UserError`."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if hasattr(error, "_sojourn_custom"):
                raise UserError(error) from None
            raise
