"""The command `sojourn`: how it ends. One line on standard error for bad input, never a traceback.

The commands themselves are in `sojourn.cli`, imported here only when there is one to run.
"""

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sojourn.live.signals import OWN_NETWORK, TO_COMMAND, end_at_once

DONE, FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes; the last two as the shell has them for SIGINT and SIGPIPE."""

WORD_MAX = 300
"""Longest word of a message, in characters: a file name may be long, an echo of the input not."""


def entry() -> None:
    """Run the command line of this process and leave with its exit code."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, end_at_once)
    if OWN_NETWORK in os.environ:
        # It was started anew, with the signals of the terminal held back until there is a handler.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_COMMAND)
    code = main(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        # From here on nothing could handle a KeyboardInterrupt.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and give the exit code."""
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
        where = error.filename or "standard output"
        return _say(f"{where}: {(error.strerror or str(error)).lower()}", BAD_INPUT)
    except MemoryError:
        return _say("there is not enough memory for this", FAILED)
    except BaseException as error:  # a panic of Rust is no Exception
        return _refusal(error)
    return code


def _pipe_closed() -> int:
    """Discard the rest of the output, which nobody reads, and return the exit code."""
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
    from sojourn.cli.run import app

    if signal.getsignal(signal.SIGINT) is end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with _telling_warnings():
        # Without its own handling of errors, typer gives the code and lets the errors out.
        code = app(arguments or ["--help"], prog_name="sojourn", standalone_mode=False)
    if code == INTERRUPTED:  # what typer makes of a Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else DONE


@contextmanager
def _telling_warnings() -> Iterator[None]:
    """Write each warning of sojourn as one line on standard error, once."""
    from sojourn.scenario.advice import ScenarioWarning, StoreWarning

    ours = (ScenarioWarning, StoreWarning)
    said = set()
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *rest: Any) -> None:
        if not issubclass(category, ours):
            usual(message, category, *rest)
        elif str(message) not in said:
            said.add(str(message))
            _say(f"warning: {message}", DONE)

    with warnings.catch_warnings():
        for category in ours:
            warnings.simplefilter("always", category)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _refusal(error: BaseException) -> int:
    """Say what is wrong with the input; anything else is a fault of ours and says so."""
    from typer import Abort, Exit

    from sojourn import InputError

    if isinstance(error, InputError):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, Exit):
        return int(error.exit_code)
    if isinstance(error, Abort):  # typer's name for a Ctrl-C
        return _say("interrupted", INTERRUPTED)
    if hasattr(error, "format_message"):  # an unknown option, a missing argument
        context = getattr(error, "ctx", None)
        command = "sojourn" if context is None else context.command_path
        return _say(f"{error.format_message()} (see {command} --help)", BAD_INPUT)
    if os.environ.get("SOJOURN_DEBUG"):
        raise error
    kind = type(error).__name__
    return _say(f"a fault in sojourn itself, SOJOURN_DEBUG=1 shows where: {kind}: {error}", FAILED)


def _say(message: str, code: int) -> int:
    """Write `message` on standard error, on one line; overlong words of the input are cut."""
    line = "".join(c if c.isprintable() else " " for c in message)
    words = (
        word if len(word) <= WORD_MAX else f"{word[:60]}... ({len(word)} characters)"
        for word in line.split()
    )
    print(f"sojourn: {' '.join(words)}", file=sys.stderr)
    return code
