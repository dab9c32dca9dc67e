"""Lines on their way to a file: a bounded queue, and a daemon thread that writes, so that no one else waits for a disk.

No lock is held while a line is put in: a signal handler, which may interrupt the same code, may put one in as well.
"""

import _thread
import contextlib
import time
from _queue import Empty, SimpleQueue  # of C: gevent replaces the names in `queue`
from collections import deque
from typing import Protocol

from jaxobs.base import threads
from jaxobs.base.files.appended import MOST_AT_ONCE, AppendedFile, Written
from jaxobs.base.guard import internal_error

MOST_LINES = 10_000
MOST_BYTES = 16 * 2**20
STALLED_PATIENCE = 1.0
"""How long the program's end waits for the reader of a pipe."""
PATIENCE = 3.0
"""How long it waits for a disk."""
_LOOK_SECONDS = 0.1


class Accounts(Protocol):
    """Receiver of the number of lines that are not written."""

    def full(self, lines: int) -> None:
        """Counts lines that found no room in the queue, or that nobody took up to the end."""

    def written(self, written: Written) -> None:
        """Counts what a write left out, or its failure."""


class LineQueue:
    """Writes lines in their order. Safe for threads and signal handlers; the thread starts with the first line."""

    def __init__(self, file: AppendedFile, accounts: Accounts) -> None:
        self._file = file
        self._accounts = accounts
        self._closing = False
        self._begin()

    def _begin(self) -> None:
        self._queue: SimpleQueue[tuple[bytes, int] | _thread.LockType | None] = SimpleQueue()
        self._hand: deque[bytes] = deque()
        """Lines that were taken out of the queue and are not written yet."""
        self._flushes: list[_thread.LockType] = []
        self._asked = 0
        """Flushes and wishes to bring lines to the disk that are in the queue."""
        self._put_in = self._taken_out = 0
        """Bytes so far. Threads at once may undo each other's addition, until what they put in is taken out."""
        self._writing = threads.Lock()
        """Held while somebody writes."""
        self._stalled = False
        self._given_up = False
        self._unsynced = self._syncing = False
        """Whether something was put in since it was asked for last, and whether the writer is asked for it."""

    def put(self, line: bytes) -> None:
        """Has a line written later; one that finds no room is counted by `accounts`."""
        full = self._queue.qsize() >= MOST_LINES or self._put_in - self._taken_out > MOST_BYTES
        if full or self._given_up:
            self._accounts.full(1)
            return
        self._unsynced = True
        total = self._put_in = self._put_in + len(line)
        self._queue.put((line, total))
        self._see_to_a_writer()

    def close(self) -> None:
        """Waits a little for what was put in to be written, and closes the file. A line that comes later is written."""
        self._closing = True
        if not self.flush():
            self._given_up = True
            self._accounts.full(self._queue.qsize() - self._asked + len(self._hand))

    def flush(self) -> bool:
        """Waits until all lines so far are done with; no longer than a disk or reader deserves. Whether they are."""
        done = threads.Lock()
        done.acquire()
        self._asked += 1
        self._queue.put(done)
        self._see_to_a_writer()
        began = time.monotonic()
        while not done.acquire(timeout=_LOOK_SECONDS):
            if time.monotonic() - began > (STALLED_PATIENCE if self._stalled else PATIENCE):
                return False
        return True

    def sync(self) -> None:
        """Has what was put in so far flushed to disk, later."""
        if self._unsynced:
            self._unsynced = False
            self._asked += 1
            self._queue.put(None)
            self._see_to_a_writer()

    def after_fork(self) -> None:
        """Starts again in a forked child: the lines and the thread are the parent's."""
        self._file.after_fork()
        self._begin()

    # ------------------------------------------------------------------------------------------ the writer

    def _see_to_a_writer(self) -> None:
        if self._writing.acquire(blocking=False):
            try:
                # Not a `Thread`: to start one takes a lock that the code which a signal interrupted may hold.
                threads.start_new_thread(self._write_until_idle, (True,))
            except (RuntimeError, MemoryError):  # the interpreter is finalizing, or there is no room for a stack
                self._write_until_idle(forever=False)

    def _write_until_idle(self, forever: bool) -> None:
        queued, writing = self._queue, self._writing
        while True:
            self._write(forever)
            if self._given_up:
                self._file.close()
            writing.release()
            # Who put a line in between found somebody writing.
            if self._stalled or self._given_up or queued.empty() or not writing.acquire(blocking=False):
                return

    def _write(self, forever: bool) -> None:
        """Writes what comes; returns when there is nothing and it is to close, or, if not `forever`, at once then."""
        while not self._given_up:
            try:
                self._take(forever and not self._closing)
                while self._hand and not self._given_up:
                    self._append()
                    if self._stalled and not forever:
                        return
                if self._syncing:
                    self._syncing = False
                    self._file.sync()
                if self._queue.empty() and self._closing:
                    self._file.close()
            except Exception as error:
                self._accounts.full(len(self._hand))
                self._hand.clear()
                internal_error("event_log", error, self._file.path)
            finally:
                while self._flushes and not self._hand:
                    self._flushes.pop().release()
            if self._queue.empty() and (self._closing or not forever):
                return

    def _take(self, wait: bool) -> None:
        """Takes out what is there, up to the size of one write; where there is nothing, waits for the next."""
        room = MOST_AT_ONCE
        with contextlib.suppress(Empty):
            while room > 0:
                item = self._queue.get(block=wait and not self._hand and not self._flushes)
                if isinstance(item, tuple):
                    line, self._taken_out = item
                    self._hand.append(line)
                    room -= len(line)
                else:
                    self._asked -= 1
                    if item is None:
                        self._syncing = True
                        return
                    self._flushes.append(item)

    def _append(self) -> None:
        written = self._file.append(self._hand)
        self._stalled = written.stalled
        if written.beyond or written.lost or written.removed:
            self._accounts.written(written)
        if written.stalled:
            self._file.wait(_LOOK_SECONDS)
