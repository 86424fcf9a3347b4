"""The `alstm` command: put together from the modules that hold its subcommands.

They import what takes long when they run: help is there at once. And here everything is imported within `main`,
where Ctrl-C is expected.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    import typer

UNEXPECTED = 70
"""The exit code after an error that nobody has thought of."""


class _Raised(Exception):
    """Carries what a subcommand raised past Typer, which makes an interruption of an EOFError."""


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command. Bad input is one sentence on stderr and a non-zero exit code."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:  # in the moments before and after Ctrl-C is looked after
        print("alstm: interrupted", file=sys.stderr, flush=True)
        return 130


def _main(arguments: "Sequence[str] | None") -> int:
    from associative_lstm.lab.commands.terminal import interruptible, lasting_streams
    from associative_lstm.lab.words import printable

    with lasting_streams() as outputs:
        with interruptible(to_the_end=arguments is None) as interrupt:
            try:
                code = _run(arguments)
                sentence = "interrupted" if code == 130 and interrupt.asked else ""
            except (Exception, KeyboardInterrupt) as raised:
                error = raised.__cause__ if isinstance(raised, _Raised) and raised.__cause__ else raised
                if isinstance(error, Exception) and not interrupt.asked:
                    sentence, code = _explained(error)
                else:
                    sentence, code = _interrupted(error)
        if sys.stdout is not None:
            sys.stdout.flush()
        lost = outputs[1].lost if 1 in outputs else None
        if code == 0 and lost is not None and not isinstance(lost, BrokenPipeError):
            sentence, code = f"the output could not be written: {lost.strerror}", 1
        if sentence:
            print(f"alstm: {printable(' '.join(sentence.split()))}", file=sys.stderr, flush=True)
    return code


def _run(arguments: "Sequence[str] | None") -> int:
    code = _app()(args=arguments, prog_name="alstm", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _app() -> "typer.Typer":
    import typer
    from typer.core import TyperGroup

    from associative_lstm.lab.commands import (
        bench,
        capacity,
        demo,
        inside,
        inspect,
        report,
        reproduce,
        results,
        runs,
        sample,
        train,
    )

    class Commands(TyperGroup):
        def invoke(self, ctx: "Any") -> "Any":
            try:
                return super().invoke(ctx)
            except (EOFError, OSError, KeyboardInterrupt) as error:
                raise _Raised from error

    app = typer.Typer(
        name="alstm",
        cls=Commands,
        help="Associative Long Short-Term Memory: train, compare and reproduce.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.command()(train.train)
    app.command()(train.resume)
    app.command("eval")(runs.evaluate)
    app.command()(sample.sample)
    app.command()(inside.inside)
    app.command()(runs.compare)
    app.command()(inspect.show)
    app.command()(inspect.info)
    app.command()(bench.bench)
    app.command()(demo.demo)
    app.command()(capacity.capacity)
    app.command()(report.report)
    app.add_typer(reproduce.app, name="reproduce")
    app.add_typer(results.app, name="results")

    @app.callback(invoke_without_command=True)
    def without_subcommand(
        context: typer.Context,
        version: bool = typer.Option(False, "--version", help="Print the version and leave."),
    ) -> None:
        if version:
            from associative_lstm import __version__

            print(f"alstm {__version__}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            print(context.get_help())

    return app


def _explained(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    from associative_lstm.lab import from_file
    from associative_lstm.lab.files import Interrupted, RunError, memory_lacked

    if isinstance(error, Interrupted):
        return str(error), error.code
    if isinstance(error, RunError):
        return str(error), 1
    if lack := memory_lacked(error):
        return lack, 1
    if (where := from_file.blamed(error)) and not os.environ.get("ALSTM_DEBUG"):
        return f"{where} (ALSTM_DEBUG=1 shows more)", 1
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1
    if isinstance(error, ValueError | OSError) and str(error):
        return str(error), 1
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("associative_lstm"):
        return f"the lab is not installed: pip install 'associative-lstm[lab]' ({error})", 1
    if hasattr(error, "format_message"):  # wrong usage: of Click, or Typer's own copy of it
        return f"{error.format_message()} (see --help)", 2
    if os.environ.get("ALSTM_DEBUG"):
        raise error
    name = type(error).__name__
    what = f"{name}: {error}" if str(error) else name
    return f"unexpected error, which is a fault of alstm: {what} (ALSTM_DEBUG=1 shows where)", UNEXPECTED


def _interrupted(error: BaseException) -> tuple[str, int]:
    from associative_lstm.lab.files import Interrupted

    return (str(error), error.code) if isinstance(error, Interrupted) else ("interrupted", 130)


def _program() -> "NoReturn":
    """As a program. One of several processes leaves without taking their group down: where another has left first,
    that can wait for ever."""
    code = main()
    if os.environ.get("WORLD_SIZE", "1") == "1":
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _program()
