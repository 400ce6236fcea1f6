"""The typed way into a gateway, by its public gRPC endpoint: one method per call, failures as exceptions."""

from proctor.client.comparisons import Compared
from proctor.client.dataset_runs import DatasetRun
from proctor.client.proctor_client import FINAL_STATES, ProctorClient, Reconnect, RunFilter

__all__ = ["FINAL_STATES", "Compared", "DatasetRun", "ProctorClient", "Reconnect", "RunFilter"]
