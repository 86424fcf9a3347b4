"""What the command owes to its surroundings: streams whose reader may leave, and Ctrl-C at any moment."""

import _thread
import contextlib
import io
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO


class _Output(io.FileIO):
    """A stream that is written to as long as that goes; then it is lost, and whoever writes goes on."""

    lost: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        while rest and self.lost is None:
            try:
                written = super().write(rest)
                if written is None:  # somebody has made it a stream that does not wait
                    select.select([], [self], [])
                rest = rest[written or 0 :]
            except OSError as error:
                self.lost = error
        return len(data)


@contextlib.contextmanager
def lasting_streams() -> Iterator[dict[int, _Output]]:
    """Standard output and error that fail nobody: not where the reader has left, nor where a character has no code.

    Gives what is below them by its number, with the error of a stream that was lost.
    """
    before = sys.stdout, sys.stderr
    outputs: dict[int, _Output] = {}
    sys.stdout, sys.stderr = _lasting(sys.stdout, outputs), _lasting(sys.stderr, outputs)
    try:
        yield outputs
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        sys.stdout, sys.stderr = before


def _lasting(stream: Any, outputs: dict[int, _Output]) -> TextIO:
    if stream is None or stream not in (sys.__stdout__, sys.__stderr__):
        return stream  # closed, or somebody's own
    with contextlib.suppress(OSError):
        stream.flush()
    output = outputs[stream.fileno()] = _Output(stream.fileno(), "w", closefd=False)
    unbuffered = stream.write_through
    return io.TextIOWrapper(
        output if unbuffered else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )


class Interrupt:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextlib.contextmanager
def interruptible(*, to_the_end: bool) -> Iterator[Interrupt]:
    """Ctrl-C raises KeyboardInterrupt, and is remembered: what is in the way may make another error of it.

    A second one ends the process at once. So does one that comes after this, if it lasts ``to_the_end`` of the
    process: Python would show where it was when it left.
    """
    interrupt = Interrupt()
    before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    heard = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        while frame is not None:
            if frame.f_code is again.__code__:  # it would be lost there too: knock() comes again
                return
            frame = frame.f_back
        heard.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    def again(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        # It came in a callback, where Python can only print it: once more, a moment later.
        heard.clear()
        signal.signal(signal.SIGINT, ask)
        threading.Thread(target=knock, daemon=True).start()

    def knock() -> None:
        while not heard.wait(0.01):
            _thread.interrupt_main()

    sys.unraisablehook = again
    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        heard.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL if to_the_end else before)
        sys.unraisablehook = hook
