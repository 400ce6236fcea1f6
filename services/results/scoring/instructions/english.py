"""Languages, words and sentences of an answer, by the libraries that lm-evaluation-harness takes for IFEval.

Sentences are those of Punkt (Kiss & Strunk 2006) with the model of NLTK, words those of the Penn Treebank.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langdetect.detector_factory import DetectorFactory
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer

# Detection draws at random. There each answer gets other draws; here an answer has one language.
_SEED = 0


def load_languages() -> None:
    """Takes two seconds and some 100 MB."""
    _languages()
    _sentences()
    _words()


def language_of(text: str) -> str | None:
    """Its code in ISO 639-1; None where no word says it, as of numbers."""
    from langdetect.lang_detect_exception import LangDetectException  # noqa: PLC0415  # few tasks need it

    detector = _languages().create()
    detector.append(text)
    try:
        return str(detector.detect())
    except LangDetectException:
        return None


def sentence_count(text: str) -> int:
    return len(_sentences().tokenize(text))


def words_of(text: str) -> list[str]:
    """Punctuation is a word too, and "don't" is two."""
    tokenizer = _words()
    return [word for sentence in _sentences().tokenize(text) for word in tokenizer.tokenize(sentence)]


@cache
def _languages() -> "DetectorFactory":
    from langdetect.detector_factory import (  # noqa: PLC0415  # slow, and few tasks need it
        PROFILES_DIRECTORY,
        DetectorFactory,
    )

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = _SEED
    return factory


@cache
def _sentences() -> "PunktSentenceTokenizer":
    """NLTK's program with its model, which another package carries: NLTK would download it."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer  # noqa: PLC0415  # as above
    from punkt import load_model  # noqa: PLC0415  # as above

    model, parameters = load_model("english"), PunktParameters()
    parameters.abbrev_types.update(model.abbrev_types)
    parameters.collocations.update(model.collocations)
    parameters.sent_starters.update(model.sent_starters)
    parameters.ortho_context.update({word: int(flag) for word, flag in model.ortho_context.items()})
    return PunktSentenceTokenizer(parameters)


@cache
def _words() -> "NLTKWordTokenizer":
    from nltk.tokenize.destructive import NLTKWordTokenizer  # noqa: PLC0415  # as above

    return NLTKWordTokenizer()
