"""Regular expressions of templates: patterns as in Python, with an end in time and in size."""

from time import monotonic

import regex

from services.common.pattern_size import check_pattern_size
from services.scheduler.suites.templates.template_budget import BUDGET, MAX_REGEX_SECONDS, Budget, OverBudget


def regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """The filter of lm-evaluation-harness. Raises re.error where `re` would not read it, and regex.error."""
    check_pattern_size(pattern)
    budget = BUDGET.get()
    started = monotonic()
    try:
        return regex.sub(
            pattern,
            lambda match: _replaced(match, replacement, budget),
            text,
            count=count,
            flags=regex.VERSION0,
            timeout=budget.regex_seconds,
        )
    except TimeoutError as error:
        raise OverBudget(f"its regular expressions take more than {MAX_REGEX_SECONDS:g} s") from error
    finally:
        budget.regex_seconds = max(budget.regex_seconds - (monotonic() - started), 0.0)


def _replaced(match: "regex.Match[str]", replacement: str, budget: Budget) -> str:
    """Each backslash may stand for the longest group."""
    references = replacement.count("\\")
    longest = max(len(group or "") for group in (match.group(), *match.groups())) if references else 0
    budget.write(len(replacement) + references * longest)
    return match.expand(replacement) if references else replacement
