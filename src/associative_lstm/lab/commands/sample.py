"""`alstm sample`: what a trained network predicts, and what it writes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from associative_lstm.lab.commands.common import SEEDS, Device, Own, console, finite, know, progress_bar


def sample(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its model.safetensors.")],
    length: Annotated[int, typer.Option(help="Symbols to show or to write.", min=1, max=100_000)] = 500,
    prompt: Annotated[
        str | None, typer.Option(help="Write on from this text (online tasks; Wikipedia always writes).")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Of writing: below 1 is more careful.", min=0.01)] = 1.0,
    seed: Annotated[int, typer.Option(help="Decides the fresh data, and what is written.", **SEEDS)] = 0,
    device: Device = "cpu",
    own: Own = None,
) -> None:
    """Show what a network predicts on fresh data, symbol by symbol; with --prompt, or of Wikipedia, what it writes.

    Example: alstm sample runs/wikipedia-lstm-256-seed-0 --prompt "The city of" --temperature 0.7
    """
    from associative_lstm.lab.draw.text import bit_rows, scored_lines
    from associative_lstm.lab.run.evaluation import load_trained, predict, right_of, write_text

    finite("--temperature", temperature)
    know(own)
    trained = load_trained(run, symbols_only=True, device=device)
    task = trained.task
    if prompt is not None or task.beginning:
        with progress_bar("writing", length) as advance:
            symbols = write_text(
                trained,
                seed=seed,
                length=length,
                prompt=prompt or "",
                temperature=temperature,
                advance=advance,
            )
        console.print(Text(prompt or "", style="bold") + Text(task.decode(symbols)))
        return
    batch, logits = predict(trained, seed=seed, symbols=length)
    right, counted = right_of(task, logits, batch)
    show = bit_rows if task.vocabulary is None else scored_lines
    for line in show(task, batch, logits):
        console.print(line)
    console.print(f"right: {int(right.sum())} of {int(counted.sum())}")
