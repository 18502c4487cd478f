"""Results on object storage, like s3://bucket/load: a copy in a folder of this machine.

The parts of a store never change and are named by their contents. So a copy is up to date if it has
the same names, and several machines may add parts at the same time.
"""

import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from sojourn._sojourn import InputError
from sojourn._util.inputs import why
from sojourn.result.folders import PART
from sojourn.sweeps.failures import RunError
from sojourn.sweeps.store import ASIDE

URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)")
"""A URL, also as the path that it becomes, with one slash."""

UPLOAD_S = 5.0
"""Time between two uploads of new files, in seconds. A kill loses the runs of this time."""


def url_of(place: str | Path) -> str | None:
    """Return the URL that `place` is; None for a path of this machine."""
    match = URL.fullmatch(str(place))
    return None if match is None else f"{match[1]}://{match[2].rstrip('/')}"


@contextmanager
def local(place: str | Path, *, writes: bool = False) -> Iterator[Path]:
    """Provide a folder of this machine for a place of results: a copy of it, if it is a URL.

    With `writes`, new files of the copy are uploaded every `UPLOAD_S` seconds and at the end.

    Raises
    ------
    InputError
        If the place cannot be read, or new files cannot be written. Their folder is then kept, and
        the message names it.
    """
    url = url_of(place)
    if url is None:
        yield Path(place)
        return
    folder = Path(tempfile.mkdtemp(prefix="sojourn-"))
    copy = _Copy(url, folder)
    kept = False
    try:
        copy.download()
        if writes:
            with copy.uploading():
                yield folder
        else:
            yield folder
    except _UploadError as error:
        kept = True
        raise InputError(f"{url}: {error}; the runs are in {folder}") from None
    except (InputError, RunError) as error:
        error.args = (str(error.args[0]).replace(str(folder), url), *error.args[1:])
        raise
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


class _UploadError(Exception):
    """New files could not be uploaded."""


class _Copy:
    """Copy of the files at a URL in a folder."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        try:
            import fsspec

            self._system, root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise InputError(f"{url}: {error}; pip install 'sojourn[remote]'") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{url}: {_words(error)}") from None
        self._root = root.rstrip("/")
        self._there: set[str] = set()
        self._own: set[str] = set()

    def download(self) -> None:
        """Fetch all files."""
        try:
            self._system.invalidate_cache()
            for path in self._system.find(self._root):
                name = path.removeprefix(self._root).lstrip("/")
                target = self._folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                self._system.get_file(path, str(target))
                self._there.add(name)
        except FileNotFoundError:
            return
        except Exception as error:  # each file system has its own exceptions
            raise InputError(f"{self._url}: {_words(error)}") from None

    def upload(self) -> None:
        """Send the files that are not there, then remove sent parts that were merged since."""
        present = {name: path for name, path in self._files() if name not in self._there}
        for name, path in present.items():
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # merged meanwhile
                continue
            self._system.pipe_file(f"{self._root}/{name}", data)
            self._there.add(name)
            self._own.add(name)
        for name in sorted(self._own):
            if PART.fullmatch(PurePosixPath(name).name) and not (self._folder / name).exists():
                self._system.rm_file(f"{self._root}/{name}")
                self._own.discard(name)
                self._there.discard(name)

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """Upload new files until the end of the block, and then all."""
        over = threading.Event()

        def run() -> None:
            while not over.wait(UPLOAD_S):
                with suppress(Exception):  # the next upload repeats it, and the last one reports it
                    self.upload()

        thread = threading.Thread(target=run, name="sojourn-upload", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            try:
                self.upload()
            except Exception as error:  # each file system has its own exceptions
                raise _UploadError(_words(error)) from None

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files of the copy with their names, without temporary ones."""
        for path in sorted(self._folder.rglob("*")):
            name = path.relative_to(self._folder)
            hidden = any(part.startswith(".") or part == ASIDE for part in name.parts)
            if path.is_file() and not hidden:
                yield name.as_posix(), path


def _words(error: BaseException) -> str:
    if isinstance(error, OSError):
        return why(error)
    return " ".join(str(error).split()) or type(error).__name__
