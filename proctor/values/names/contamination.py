"""What a corpus has of the rows of a run: kinds of figures that stand beside its score."""

from proctor.values.contract_enum import ContractEnum

# Of a run.
MAX_FIGURES = 20
MAX_CORPUS_CHARACTERS = 200
MAX_DIFFERENCES = 50
# Words of an n-gram.
MAX_NGRAM = 50


class ContaminationKind(ContractEnum):
    OVERLAP = "overlap", 1
    CANARY = "canary", 2
