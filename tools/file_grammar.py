"""A contract for import-linter: a file's name tells its layer, and no layer imports one above it.

`__main__ → wiring, topics → adapters and settings → use cases → stores → model, ports and errors`: every
module of a service is in one of them, so nothing can be forgotten. A store is the `postgres` of a topic: a
use case may take its class, but no technology and no connection, and neither may the model. A port names the
model, and a model may take a port, so the two are one layer; `tools/house.py` finds circles.
"""

from collections.abc import Sequence
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

MODEL, STORE, USE_CASE, ADAPTER, WIRING, MAIN = range(6)
# A store runs the SQL of its topic: use cases take it where nothing else stands in for it.
STORES = "postgres"
LAYERS = {"__main__": MAIN, "wiring": WIRING, "topics": WIRING, "settings": ADAPTER, "errors": MODEL}
LAYER_NAMES = ("model, port or error", "store", "use case", "adapter", "wiring", "__main__")


class FileGrammarContract(Contract):
    """Names and imports of services agree."""

    # Declared as fields, read as the lists that import-linter puts in their place.
    services: Sequence[str] = cast("Sequence[str]", fields.ListField(subfield=fields.StringField()))
    technologies: Sequence[str] = cast("Sequence[str]", fields.ListField(subfield=fields.StringField()))
    verbs: Sequence[str] = cast("Sequence[str]", fields.ListField(subfield=fields.StringField()))
    forbidden_inside: Sequence[str] = cast("Sequence[str]", fields.ListField(subfield=fields.StringField()))

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001  # the base's signature
        broken = sorted(
            violation for service in self.services for violation in self._violations(graph, service)
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for violation in check.metadata["broken"]:
            output.print_error(violation)

    def _violations(self, graph: ImportGraph, service: str) -> list[str]:
        found = []
        for module in graph.find_descendants(service):
            if graph.find_children(module):
                continue
            layer = self._layer(module)
            for imported in graph.find_modules_directly_imported_by(module):
                problem = self._problem(service, layer, imported)
                if problem:
                    found.append(f"{module} ({LAYER_NAMES[layer]}) imports {imported}: {problem}")
        return found

    def _layer(self, module: str) -> int:
        *folders, name = module.split(".")
        if name in LAYERS:
            return LAYERS[name]
        if "wiring" in folders:
            return WIRING
        first_word = name.split("_")[0]
        if first_word == STORES:
            return STORE
        if first_word in self.technologies or not self.technologies_set.isdisjoint(folders):
            return ADAPTER
        # One word alone is a noun: `score` is a score, `score_answer` scores.
        return USE_CASE if first_word in self.verbs and first_word != name else MODEL

    @property
    def technologies_set(self) -> frozenset[str]:
        """A folder may be named after a technology too: all of its files are adapters."""
        return frozenset(self.technologies)

    def _problem(self, service: str, layer: int, imported: str) -> str:
        # The `postgres` at the top of a service has its connections.
        outside = (*self.forbidden_inside, f"{service}.postgres")
        if layer in {MODEL, USE_CASE} and any(_is_within(imported, package) for package in outside):
            return "a technology or a connection, which only stores and adapters know"
        if imported.startswith(f"{service}."):
            above = self._layer(imported)
            return f"a layer above it ({LAYER_NAMES[above]})" if above > layer else ""
        return ""


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
