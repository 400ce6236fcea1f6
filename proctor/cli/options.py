"""Options that several commands share."""

from typing import Annotated

import typer

Gateway = Annotated[
    str | None,
    typer.Option(
        envvar="PROCTOR_GATEWAY",
        metavar="HOST:PORT",
        help="gRPC address of the gateway; else the local stack's, else PROCTOR_GATEWAY_GRPC_ADDRESS.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run (see `proctor runs`).")]
User = Annotated[str, typer.Option(envvar="PROCTOR_USER", help="Who orders, for limits per user.")]
Page = Annotated[str, typer.Option(help="Token of the page, from the page before.")]
