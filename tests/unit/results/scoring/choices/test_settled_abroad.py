"""Sentences of few words that settle on a choice, in other languages than English."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
DISEASES = ("scurvy", "rickets", "beriberi", "pellagra")

SETTLED = [
    *(
        "Bだと思います。",
        "私はBだと思います。",
        "よってBを選びます。",
        "最も適切なのはBです。",
        "正解はBだと考えられます。",
    ),
    *("B라고 생각합니다.", "저는 B를 선택하겠습니다.", "가장 적절한 것은 B입니다.", "B가 맞습니다."),
    *("我认为答案是B。", "只有B正确。", "正确的是B。", "本题选 B。", "综上所述,正确答案是 B。"),
    *("Creo que es la B.", "Yo diría que B.", "Me inclino por la B.", "Sería la B.", "No es la A sino la B."),
    *("Je pense que c'est B.", "Il s'agit de la réponse B.", "À mon avis, c'est la B."),
    *("Ich denke, dass die Antwort B ist.", "Meiner Meinung nach ist B richtig.", "Also ist B richtig."),
    *("Ich tippe auf B.", "Ich entscheide mich für B.", "Es ist B."),
    *("Credo sia la B.", "Direi B.", "Secondo me è la B."),
    *("Acho que é a B.", "Eu diria B.", "Minha resposta é B.", "Na minha opinião, é a B."),
    *("Думаю, это B.", "Я считаю, что правильный ответ — B.", "Следовательно, ответ B."),
    *("أعتقد أن الإجابة هي B.", "أختار B.", "B هي الإجابة الصحيحة."),
    *("मुझे लगता है कि उत्तर B है।", "अतः उत्तर: B"),
    *("Bence B.", "Cevabın B olduğunu düşünüyorum.", "B'yi seçiyorum.", "B şıkkı doğrudur."),
    *(
        "La opción B es la adecuada.",
        "B stimmt.",
        "La risposta è senz'altro B.",
        "Я бы выбрал B.",
        "B klopt.",
    ),
    *("Ik denk dat het antwoord B is.", "Ik kies voor B.", "Volgens mij is het B.", "Het is B."),
]
UNCLEAR = [
    *("Bではないと思います。", "BかCです。", "Bかもしれません。", "Bは間違いです。", "AとBが正しいです。"),
    *("B가 아니라고 생각합니다.", "B 또는 C입니다.", "B일 수도 있습니다.", "B는 틀렸습니다."),
    *("可能是B。", "不能选B。", "答案是B还是C?", "A和B都对。", "选项B错误。"),
    *("No creo que sea la B.", "Quizás la B.", "Puede ser B o C.", "La B es incorrecta.", "Ni A ni B."),
    *("Je ne pense pas que ce soit B.", "Peut-être B.", "C'est B ou C.", "B est fausse."),
    *("Ich glaube nicht, dass B richtig ist.", "Vielleicht B.", "B oder C.", "Es ist nicht B."),
    *("Non credo che sia la B.", "Forse B.", "A o B", "La B è sbagliata."),
    *("Não é a B.", "Talvez B.", "B ou C.", "A é B."),
    *("Не думаю, что это B.", "Возможно, B.", "B или C.", "Это не B."),
    *("لا أعتقد أن الإجابة هي B.", "B خطأ.", "B أو C"),
    *("मुझे नहीं लगता कि उत्तर B है।", "B गलत है।", "B या C"),
    *("Belki B.", "Cevap B değil.", "B veya C.", "B yanlıştır."),
    *("B stimmt nicht.", "B klopt niet.", "Я бы не выбрал B.", "La opción B no es la adecuada."),
    *("Ik denk niet dat het B is.", "Misschien B.", "B of C.", "B is fout.", "B is"),
]


@pytest.mark.parametrize("texts", [(), DISEASES], ids=["letters", "texts"])
@pytest.mark.parametrize("answer", SETTLED)
def test_a_sentence_of_nothing_but_a_choice_names_it(answer: str, texts: tuple[str, ...]) -> None:
    assert named_choice(answer, LETTERS, texts) == 1


@pytest.mark.parametrize("texts", [(), DISEASES], ids=["letters", "texts"])
@pytest.mark.parametrize("answer", UNCLEAR)
def test_a_sentence_with_any_other_word_names_none(answer: str, texts: tuple[str, ...]) -> None:
    assert named_choice(answer, LETTERS, texts) is None


def test_the_text_behind_the_letter_has_to_be_its_own() -> None:
    assert named_choice("Creo que es la B) rickets.", LETTERS, DISEASES) == 1
    assert named_choice("Creo que es la B) scurvy.", LETTERS, DISEASES) is None
