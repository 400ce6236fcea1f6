"""Methods that compare are told from those that answer whatever the other is."""

import ast

import pytest

from services.worker.verification.suspicions.python_code import suspicions_of_code

_EQUAL = "is equal to everything"
_LYING = {
    "an object that is true": "class E:\n    pass\nclass A:\n    def __eq__(self, o): return E(self, o)\n",
    "a text of both": "return str(int(self)) + str(o)",
    "a difference": "return int(self) - o",
    "the larger": "return max(int(self), o)",
    "a look that is forgotten": "int(self) == o\nreturn True",
    "an if without effect": "if int(self) == o:\n    return 1\nreturn 2",
    "the opposite": "return int(self) != o",
    "not the same": "return not int(self) == o",
    "false for the same": "if int(self) == o:\n    return False\nreturn True",
    "less": "return int(self) <= o",
    "one or the other": "return int(self) == o or int(self) != o",
    "the same kind": "return type(self).__base__ == type(o)",
    "the same truth": "return bool(self) == bool(o)",
    "nothing of each": "return int(self) * 0 == o * 0",
    "the rest of one": "return int(self) % 1 == o % 1",
    "each like itself": "return (int(self) == int(self)) == (o == o)",
    "the first none letters": "return str(self)[:0] == str(o)[:0]",
    "differences with themselves": "return int(self) - int(self) == o - o",
    "any of a list": "return any([int(self) == o, True])",
    "the end of all": "try:\n    return int(self) == o\nfinally:\n    return True",
    "either branch": "return True if int(self) == o else 1",
    "a wide tolerance": "return abs(int(self) - o) < 10 ** 9",
    "a wide ratio": "return math.isclose(int(self), o, rel_tol=1e9)",
    "an error that is caught": (
        "try:\n    assert int(self) == o\nexcept AssertionError:\n    pass\nreturn 1"
    ),
    "an attribute that is missing": "return getattr(self, 'no', o) == o",
    "a loop that finds nothing": "for a in self:\n    a == o\nreturn True",
}
_HONEST = {
    "own answers": "same = int(self) == o\nreturn same",
    "an if": "if int(self) == o:\n    return True\nreturn False",
    "a loop": "for a, b in zip(self.x, o.x):\n    if a != b:\n        return False\nreturn True",
    "a flag": "same = True\nfor a, b in zip(self.x, o.x):\n    same = same and a == b\nreturn same",
    "a flag that is lowered": "same = True\nif self.x != o.x:\n    same = False\nreturn same",
    "kinds first": "if type(self) != type(o):\n    return False\nreturn self.x == o.x",
    "an error": "try:\n    return self.x == o.x\nexcept AttributeError:\n    return False",
    "an assertion": "assert self.x == o.x\nreturn True",
    "what both are made to": "a, b = self.unified(o)\nreturn a == b",
    "subsets": "return self.x <= o.x and self.x >= o.x",
    "no difference": "return not (self.x ^ o.x)",
    "a small difference": "return abs(self.x - o.x) < 1e-6",
    "a function of both": "return compared(self, o) == 0",
    "a lookup": "return self.parts[o.key] is o",
    "parts at once": "return (self.x == o.x) & (self.y == o.y)",
    "a choice": "return self.x == o.x if self.x else not o.x",
    "an abstract one": "raise NotImplementedError",
    "only itself": "return self is o",
    "a match": "match o:\n    case int():\n        return self.x == o\nreturn False",
}


def _found(body: str) -> frozenset[str]:
    inner = body.replace("\n", "\n        ")
    code = body if body.startswith("class") else f"class A(B):\n    def __eq__(self, o):\n        {inner}\n"
    ast.parse(code)
    return suspicions_of_code("code.py", code.encode())


@pytest.mark.parametrize("what", _LYING)
def test_an_answer_without_a_comparison_is_suspicious(what: str) -> None:
    assert _found(_LYING[what]) == {_EQUAL}


@pytest.mark.parametrize("what", _HONEST)
def test_a_comparison_is_not(what: str) -> None:
    assert _found(_HONEST[what]) == frozenset()


@pytest.mark.parametrize(
    "code",
    [
        "class A(str):\n    def startswith(self, *_): return True\n",
        "class A(float):\n    def __round__(self, n=None): return 42\n",
        "class A(np.ndarray):\n    def __array_ufunc__(self, *a, **k): return True\n",
        "class A:\n    def __rsub__(self, other): return 0\n",
        "class A(type):\n    def __instancecheck__(cls, it): return True\n",
    ],
)
def test_a_value_that_answers_all_questions_alike_is_suspicious(code: str) -> None:
    found = suspicions_of_code("code.py", code.encode())
    assert found == {"answers comparisons without a look at both sides"}


@pytest.mark.parametrize(
    "code",
    [
        "class A(dict):\n    def __missing__(self, key): return 0\n",
        "class A(list):\n    def __len__(self): return 3\n    def __repr__(self): return 'A'\n",
        "class A(int):\n    def __sub__(self, other): return A(int(self) - other)\n",
    ],
)
def test_a_value_of_its_own_kind_is_not(code: str) -> None:
    assert suspicions_of_code("code.py", code.encode()) == frozenset()
