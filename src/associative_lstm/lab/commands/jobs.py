"""Where the runs of a grid are made: by processes of this machine, or by a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from associative_lstm.lab.commands.common import errors

if TYPE_CHECKING:
    from associative_lstm.lab.sweep.jobs import Execute

Jobs = Annotated[
    int, typer.Option(help="Runs made at a time, each by a process with one thread.", min=1, max=256)
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Send the runs to a cluster: ray (this machine's own, with --jobs workers)."),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Of an existing Ray cluster, e.g. auto or ray://head:10001; it decides how many runs at a time."
    ),
]


def check_cluster(cluster: str | None, address: str | None) -> None:
    if cluster not in (None, "ray"):
        raise ValueError(f"--cluster must be ray, got {cluster!r}")
    if cluster is None and address is not None:
        raise ValueError("--address needs --cluster ray")


@contextmanager
def executing(jobs: int, cluster: str | None, address: str | None) -> Iterator["Execute"]:
    """What makes the runs: ``jobs`` at a time here, or as many as the cluster has processors."""
    from associative_lstm.lab.sweep.cluster import ray_cluster
    from associative_lstm.lab.sweep.local import local

    check_cluster(cluster, address)
    if cluster is None:
        yield local(jobs)
        return
    with ray_cluster(address, jobs, partial(errors.print, style="yellow")) as execute:
        yield execute
