"""Pool of worker processes. The death of a worker fails only the call that it was executing.

`concurrent.futures.ProcessPoolExecutor` fails every call when a worker dies, and its workers
outlive a parent that is killed.
"""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process receives when its parent thread ends."""

HELD_BACK = frozenset({signal.SIGINT}) | frozenset(
    {signal.SIGQUIT} if hasattr(signal, "SIGQUIT") else ()
)
"""Signals of the terminal, blocked in a worker until it ignores SIGINT."""


class WorkerDiedError(RuntimeError):
    """The worker process of a call died: by a signal, or by `os._exit`."""

    def __init__(self, code: int | None) -> None:
        super().__init__(_death(code))
        self.code = code


@dataclass(frozen=True)
class _Call:
    """Call to execute, pickled."""

    future: Future[Any]
    data: bytes


@dataclass
class _Worker:
    """Worker process, our end of its pipe, and the call that it executes."""

    process: Any
    pipe: Connection
    call: _Call | None = None


class Workers(Executor):
    """Executor of spawned processes, which start when they are needed.

    Parameters
    ----------
    count : int, optional
        Number of processes. The default is the number of cores.
    initializer : callable, optional
        Called in each process before its first call, with `initargs`.
    """

    def __init__(
        self,
        count: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        self._max_workers = count or os.cpu_count() or 1
        self._initial = initializer, initargs
        # Other start methods would copy threads' locks, or keep descriptors of this process open.
        self._context = multiprocessing.get_context("spawn")
        self._calls: deque[_Call] = deque()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._ends = self._killed = self._is_woken = False
        self._wake, self._waker = self._context.Pipe(duplex=False)
        self._thread = threading.Thread(target=self._manage, name="sojourn-workers", daemon=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call; an argument that cannot be pickled raises at once."""
        call = _Call(Future(), pickle.dumps((fn, args, kwargs)))
        with self._lock:
            if self._ends:
                raise RuntimeError("cannot submit a call after shutdown")
            self._calls.append(call)
            if self._thread.ident is None:
                self._thread.start()
            self._awaken()
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when all calls are done. With `cancel_futures`, drop waiting calls."""
        with self._lock:
            self._ends = True
            if cancel_futures:
                for call in self._calls:
                    call.future.cancel()
            self._awaken()
        if wait and self._thread.ident is not None:
            self._thread.join()

    def kill(self) -> None:
        """End the workers at once, with the calls that they execute."""
        self._killed = True
        self.shutdown(cancel_futures=True)

    def _awaken(self) -> None:
        """Wake the thread; the caller has the lock."""
        if not self._is_woken:  # the pipe never fills
            self._is_woken = True
            self._waker.send_bytes(b"")

    def _manage(self) -> None:
        """Start workers, hand out calls and take results until `shutdown`.

        This thread starts all workers: they end with the thread that started them.
        """
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)  # inherited by the workers
        while True:
            with self._lock:
                if self._is_woken:
                    self._wake.recv_bytes()
                    self._is_woken = False
                self._calls = deque(c for c in self._calls if not c.future.cancelled())
            self._hand_out()
            busy = [one for one in self._workers if one.call is not None]
            if self._killed or (self._ends and not busy and not self._calls):
                break
            places: list[Any] = [self._wake]
            for worker in self._workers:
                places += [worker.pipe, worker.process.sentinel]
            ready = wait(places)
            for worker in list(self._workers):
                if worker.pipe in ready or worker.process.sentinel in ready:
                    self._take(worker)
        for worker in self._workers:
            worker.pipe.close()
            if self._killed:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            if worker.call is not None:
                worker.call.future.set_exception(WorkerDiedError(worker.process.exitcode))

    def _hand_out(self) -> None:
        """Send each waiting call to an idle worker, or to a new one."""
        while not self._killed:
            idle = next((one for one in self._workers if one.call is None), None)
            with self._lock:
                if not self._calls or (idle is None and len(self._workers) >= self._max_workers):
                    return
                call = self._calls.popleft()
            if not call.future.set_running_or_notify_cancel():
                continue
            worker = idle or self._start()
            worker.call = call
            try:
                worker.pipe.send_bytes(call.data)
            except OSError:  # it died
                self._reap(worker)

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, *self._initial), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _take(self, worker: _Worker) -> None:
        """Take the result of a worker, or note its death."""
        try:
            data = worker.pipe.recv_bytes() if worker.pipe.poll() else None
        except (EOFError, OSError):
            data = None
        if data is None:
            self._reap(worker)
            return
        call, worker.call = worker.call, None
        assert call is not None
        try:
            is_done, value = pickle.loads(data)
        except Exception as error:  # it cannot be read here
            is_done, value = False, error
        if is_done:
            call.future.set_result(value)
        else:
            call.future.set_exception(value)

    def _reap(self, worker: _Worker) -> None:
        """Remove a worker that died; its call fails."""
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        if worker.call is not None:
            worker.call.future.set_exception(WorkerDiedError(worker.process.exitcode))


def _serve(pipe: Connection, initializer: Callable[..., object] | None, initargs: Any) -> None:
    """Execute calls until the pipe is closed: the main function of a worker."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what a Ctrl-C ends
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    if initializer is not None:
        initializer(*initargs)
    while True:
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            function, args, kwargs = pickle.loads(data)
            outcome = True, function(*args, **kwargs)
        except BaseException as error:
            outcome = False, error
        pipe.send_bytes(_pickled(outcome))


def _pickled(outcome: tuple[bool, Any]) -> bytes:
    """Pickle the outcome of a call; an outcome that cannot be pickled becomes a RuntimeError."""
    try:
        data = pickle.dumps(outcome)
        if not outcome[0]:
            pickle.loads(data)  # some exceptions can be written only
    except Exception as error:
        what = error if outcome[0] else outcome[1]
        return pickle.dumps((False, RuntimeError(f"{type(what).__name__}: {what}")))
    return data


def end_with_parent() -> None:
    """Make this process, started by `multiprocessing`, end when its parent ends.

    The kernel of Linux kills it then. Elsewhere a thread waits for the end of the parent.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    """Exit when the process of `sentinel` has ended, also if it ended before this call."""
    wait([sentinel])
    os._exit(1)


def _death(code: int | None) -> str:
    """Return the cause of death of a process in words."""
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        out_of_memory = ", perhaps for lack of memory" if name == "SIGKILL" else ""
        return f"the worker process was killed by {name}{out_of_memory}"
    return f"the worker process ended with exit code {code}"
