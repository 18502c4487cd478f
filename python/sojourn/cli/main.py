"""Entry point of the command `sojourn`: signals, exit codes, error messages.

Bad input prints one line on standard error and no traceback. The other modules of `sojourn.cli`
have the commands; they are imported only when a command runs.
"""

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sojourn.live.signals import OWN_NETWORK, TO_COMMAND, end_at_once

DONE, FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes; for SIGINT and SIGPIPE as in a shell: 128 plus the signal's number."""

WORD_MAX = 300
"""Longest word in a message, in characters; longer ones are cut."""


def entry() -> None:
    """Run the command line of this process and exit with its exit code."""
    _open_standard_streams()
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, end_at_once)
    if OWN_NETWORK in os.environ:
        # Re-executed in its own network with the signals of the terminal blocked, until here.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_COMMAND)
    code = main(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        # A KeyboardInterrupt could not be handled from here on.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open /dev/null as each standard stream that is closed.

    Otherwise the next file or socket would have its number, and so receive what is printed, or be
    inherited by the command of a link.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def main(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        code = _run(list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as end:  # typer: 0 after shell completion, else a closed pipe
        return _pipe_closed() if end.code else DONE
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except OSError as error:
        from sojourn._util.files import OutputError

        where = error.filename or "standard output"
        code = FAILED if isinstance(error, OutputError) else BAD_INPUT
        return _say(f"{where}: {(error.strerror or str(error)).lower()}", code)
    except MemoryError:
        return _say("not enough memory", FAILED)
    except BaseException as error:  # a panic of Rust is not an Exception
        return _refusal(error)
    return code


def _pipe_closed() -> int:
    """Discard the rest of the output and return the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return PIPE_CLOSED


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        from sojourn import __version__

        print(f"sojourn {__version__}")
        return DONE
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    command = _command()  # imports much, during which SIGINT ends the process at once
    if signal.getsignal(signal.SIGINT) is end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with _printing_warnings():
        # In this mode typer returns the exit code and raises its errors.
        code = command(arguments or ["--help"], prog_name="sojourn", standalone_mode=False)
    if code == INTERRUPTED:  # typer converts KeyboardInterrupt to this code
        raise KeyboardInterrupt
    return code if isinstance(code, int) else DONE


@cache
def _command() -> Any:
    """Return the command with all its options, which take longer to build than to parse."""
    from typer.main import get_command

    from sojourn.cli.run import app

    return get_command(app)


@contextmanager
def _printing_warnings() -> Iterator[None]:
    """Print each warning of sojourn once, as one line on standard error."""
    from sojourn.scenario.advice import ScenarioWarning, StoreWarning

    ours = (ScenarioWarning, StoreWarning)
    printed = set()
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *rest: Any) -> None:
        if not issubclass(category, ours):
            usual(message, category, *rest)
        elif str(message) not in printed:
            printed.add(str(message))
            _say(f"warning: {message}", DONE)

    with warnings.catch_warnings():
        for category in ours:
            warnings.simplefilter("always", category)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _refusal(error: BaseException) -> int:
    """Print an error of the input, or an internal error; return the exit code."""
    from typer import Abort, Exit

    from sojourn import InputError, RunError
    from sojourn.cli.commands import UserError
    from sojourn.cli.options import Interrupted

    if isinstance(error, InputError):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, RunError):
        for line in str(error).splitlines():
            _say(line, FAILED)
        return FAILED
    if isinstance(error, Interrupted):
        return _say(str(error), INTERRUPTED)
    if isinstance(error, Exit):
        return int(error.exit_code)
    if isinstance(error, Abort):  # typer's name for a Ctrl-C
        return _say("interrupted", INTERRUPTED)
    if hasattr(error, "format_message"):  # an unknown option, a missing argument
        if absent := _missing_option(getattr(error, "option_name", "")):
            return _say(absent, BAD_INPUT)
        context = getattr(error, "ctx", None)
        command = "sojourn" if context is None else context.command_path
        return _say(f"{error.format_message()} (see {command} --help)", BAD_INPUT)
    if isinstance(error, UserError):
        return _exception_of_user(error.error)
    if os.environ.get("SOJOURN_DEBUG"):
        raise error
    kind = type(error).__name__
    return _say(f"a fault in sojourn itself, SOJOURN_DEBUG=1 shows where: {kind}: {error}", FAILED)


def _missing_option(option: str) -> str:
    """Return the message for an option named like a missing feature, or an empty string."""
    from sojourn.scenario import missing

    name = option.lstrip("-")
    spec = missing.find(name) if name else None
    return "" if spec is None else f"{option}: {missing.refusal(spec, name)}"


def _exception_of_user(error: BaseException) -> int:
    """Print an exception of a class of the user, with the frames of its file.

    The exit code is `FAILED` for an exception that ends programs (SystemExit), or for lack of
    memory.
    """
    import traceback
    from pathlib import Path

    ours = str(Path(__file__).parents[1])
    printed = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in printed.stack if not frame.filename.startswith(ours)]
    first = next((i for i, f in enumerate(printed.stack) if f.filename.startswith(ours)), 0)
    printed.stack = traceback.StackSummary.from_list(
        [frame for frame in printed.stack[first:] if frame in frames]
    )
    print("".join(printed.format()), end="", file=sys.stderr)
    ends = isinstance(error, MemoryError) or not isinstance(error, Exception)
    return FAILED if ends else BAD_INPUT


def _say(message: str, code: int) -> int:
    """Print `message` as one line on standard error, with long words cut; return `code`."""
    line = "".join(c if c.isprintable() else " " for c in message)
    words = (
        word if len(word) <= WORD_MAX else f"{word[:60]}... ({len(word)} characters)"
        for word in line.split()
    )
    print(f"sojourn: {' '.join(words)}", file=sys.stderr)
    return code
