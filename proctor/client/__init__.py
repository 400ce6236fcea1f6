"""The client of a gateway."""

import os

# gRPC reads it when it starts, so it is set before anything imports gRPC. Otherwise gRPC writes lines of its
# own to the terminal, such as one for each idle connection that the gateway ends.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
