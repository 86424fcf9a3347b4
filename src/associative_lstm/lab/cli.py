"""The `alstm` command: put together from the modules that hold its subcommands."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

try:
    import typer
except ImportError:
    sys.exit("alstm: the lab is not installed: pip install -e '.[lab]' in the project's folder")

from associative_lstm.lab.commands import (
    bench,
    capacity,
    demo,
    inspect,
    report,
    reproduce,
    runs,
    sample,
    train,
)
from associative_lstm.lab.files import Interrupted, RunError, memory_lacked

app = typer.Typer(
    name="alstm",
    help="Associative Long Short-Term Memory: train, compare and reproduce.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(train.train)
app.command()(train.resume)
app.command("eval")(runs.evaluate)
app.command()(sample.sample)
app.command()(runs.compare)
app.command()(inspect.show)
app.command()(inspect.info)
app.command()(bench.bench)
app.command()(demo.demo)
app.command()(capacity.capacity)
app.command()(report.report)
app.add_typer(reproduce.app, name="reproduce")


@app.callback(invoke_without_command=True)
def _without_subcommand(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Bad input is one sentence on stderr and a non-zero exit code."""
    try:
        code = app(args=arguments, prog_name="alstm", standalone_mode=False)
    except Interrupted as stopped:
        return _fail(str(stopped), stopped.code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left: nothing to say
        return 1
    except (RunError, ValueError, OSError) as error:
        return _fail(str(error) or type(error).__name__, 1)
    except Exception as error:
        if lack := memory_lacked(error):
            return _fail(lack, 1)
        if hasattr(
            error, "format_message"
        ):  # wrong usage: Typer has its own copy of Click's exceptions, or Click's
            return _fail(f"{error.format_message()} (see --help)", 2)
        raise
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    sentence = " ".join(message.split())
    try:
        print(f"alstm: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # a terminal that was closed: what is left in the buffer must not fail again at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _main() -> NoReturn:
    """As a program. One of several processes leaves without taking their group down: where another has left first,
    that can wait for ever."""
    code = main()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _main()
