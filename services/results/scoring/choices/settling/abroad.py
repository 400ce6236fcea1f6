"""Sentences of nothing but a choice and words that choose, in other languages than English.

"Creo que es la B.", "Ik denk dat het antwoord B is.", "Bだと思います。". All words that may stand there
affirm, so that their order does not matter; a sentence with any other word is none of these.
"""

import re

from services.results.scoring.answer_words import one_of
from services.results.scoring.choices.options import ChoiceOptions

_SPANISH = (
    r"(?:yo )?(?:creo|pienso|diría|considero|opino|supongo|elijo|elegiría|escojo|selecciono|marco|marcaría)"
    r"|me (?:inclino|decido) por|me quedo con|en mi opinión|por (?:lo )?tanto|entonces|así que|luego"
    r"|sería|debe ser"
    r"|respuesta|elección|opción|letra|alternativa|mi|una|(?:final|correcta|adecuada)|es|que|sin duda"
    r"|seguramente|claramente"
    r"|la|el"
)
_PORTUGUESE = (
    r"(?:eu )?(?:acho|acredito|penso|diria|escolho|escolheria|marco|marcaria|fico com|considero)"
    r"|na minha opinião|portanto|logo|então|assim|seria|deve ser|é|(?-i:a)(?! [A-J]\b(?! *\Z))"
    r"|minha|resposta|escolha|letra|correta|certa|final|letra"
    r"|alternativa|opção"
)
_FRENCH = (
    r"je (?:pense|crois|dirais|choisis|choisirais|sélectionne|retiens|répondrais|réponds|opte pour)"
    r"|(?:à|selon) (?:mon avis|moi)|donc|ainsi|par conséquent|c'est|il s'agit de|ce serait|serait|est"
    r"|que|qu'il"
    r"|ma|bonne|meilleure|réponse|option|proposition|lettre|correcte|exacte|finale"
    r"|la|de"
)
_ITALIAN = (
    r"(?:io )?(?:penso|credo|ritengo|direi|scelgo|sceglierei|seleziono|opto per|indicherei)"
    r"|secondo me|a mio (?:avviso|parere)|quindi|dunque|perciò|pertanto|senz'altro|sicuramente|sarebbe"
    r"|sia|è|che"
    r"|mia|l'|(?:l')?(?:risposta|opzione|alternativa|lettera|scelta)|corretta|giusta|esatta|finale|la"
)
_GERMAN = (
    r"ich (?:denke|glaube|meine|würde|wähle|nehme|tippe auf|entscheide mich für|sage|bin (?:mir )?(?:sicher"
    r"|der meinung))"
    r"|meiner meinung nach|meines erachtens|also|somit|daher|folglich|demnach|damit|es|das|dass|ist|wäre"
    r"|lautet"
    r"|die|meine|richtige?|korrekte?|beste|antwort|lösung|wahl|option"
)
_DUTCH = (
    r"ik (?:denk|kies(?: voor)?|geloof|zou|ga voor|meen)|volgens mij|naar mijn mening|dus|daarom|dat|het"
    r"|is|zou"
    r"|zijn|mijn|juiste?|goede|correcte|beste|antwoord|keuze|optie|zeggen"
)
_RUSSIAN = (
    r"(?:я )?(?:думаю|считаю|полагаю|выбираю|выберу|выбрал бы|бы выбрала?)|по-моему|по моему мнению|итак"
    r"|значит|поэтому"
    r"|следовательно|таким образом|что|это|будет|верно|правильно"
    r"|мой|правильный|верный|окончательный|ответ|вариант|выбор"
)
_ARABIC = (
    "(?:أنا )?(?:أعتقد|أظن|أرى|أختار|اخترت)|في رأيي|برأيي|إذن|إذا|لذلك|لذا|وبالتالي|بالتالي|أن|أنها|أنه"
    "|هي|هو"
    "|(?:ال)?(?:إجابة|جواب|خيار|اختيار)(?:ي)?|الصحيحة?|الصحيح|النهائية?"
)
_HINDI = (
    "मुझे लगता है|मेरे (?:विचार|अनुसार)(?: से| में)?|मेरा|मेरी|कि|इसलिए|अतः|तो|यह|सही|अंतिम|उत्तर|जवाब|विकल्प|मैं|चुनता हूँ|चुनूंगा"
)
_TURKISH = (
    r"bence|bana göre|kanımca|dolayısıyla|bu yüzden|bu nedenle|yani|o halde|sanırım|doğru"
    r"|(?:doğru )?(?:cevap|cevabım|cevabın|cevabı|yanıt|yanıtım|yanıtın|seçenek|şık|seçimim)"
)
_CHINESE = (
    "我(?:认为|覺得|觉得|想|選擇|选择|选|會選|会选|的答案)|因此|所以|故|综上(?:所述)?|應該|应该|应|應|正确的|正確的"
    "|只有|就|本题|此题|这题|这道题|选择|選擇|选|選|答案|选项|選項|是|为|為|最佳|最合适的|最恰当的|最符合题意的"
)
_JAPANESE = (
    "私は|私の|私なら|よって|したがって|従って|ゆえに|つまり|正しい|最も|適切な|適当な|もの|の"
    "|答え|正解|解答|回答|選択肢|は|が|番"
)
_KOREAN = (
    "저는|제 생각에는|제|나는|내|따라서|그러므로|그래서|즉|결국|가장|적절한|적합한|알맞은|옳은"
    "|올바른|맞는|것은|정답은|답은|정답|답"
)
_WORDS = one_of(
    _SPANISH, _PORTUGUESE, _FRENCH, _ITALIAN, _GERMAN, _DUTCH, _RUSSIAN, _ARABIC, _HINDI, _TURKISH
)
# Their scripts set no words apart.
_UNSPACED_WORDS = one_of(_CHINESE, _JAPANESE, _KOREAN)
# They do not choose by themselves: "B is" may be English.
_IS_BEHIND = r"\s(?:ist|is|wäre|zijn|है|होगा)"
_BEHIND = one_of(
    r"\s(?:ist|is|wäre|zijn) (?:(?:die|het|de) )?(?:richtige?|korrekte?|juiste?|goede)"
    r"(?: (?:antwort|lösung|option|antwoord|optie|keuze))?",
    r"\s(?:richtig|korrekt|juist)(?: (?:ist|is))?|\s(?:stimmt|klopt|passt)",
    r"\s(?:sagen|wählen|nehmen|tippen|antworten|zeggen|kiezen)",
    r"\s(?:es|é|est|è|sia)(?: (?:la|a|l'))? ?(?:respuesta |resposta |réponse |bonne |risposta |opción "
    r"|opção )?"
    r"(?:correct[ae]|adecuada|corretta?|certa|giusta|esatta|exacte|réponse)",
    r"\s?(?:选项|項|项|选項)?(?:是)?(?:正确|正確|对)(?:的)?",
    r"\s?(?:番|の方)?(?:が正解)?(?:(?:だ|である|です)?と(?:思います|思う|考えます"
    r"|考えられます|判断します)|です|である|だ"
    r"|を(?:選びます|選択します|選ぶ)|になります|が正しい(?:です)?|が(?:最も)?適切(?:です)?)",
    r"\s?번?(?:이|가|을|를)?\s?(?:이?라고 (?:생각합니다|생각해요|봅니다"
    r"|판단됩니다|판단합니다)|입니다|이다|이에요|예요"
    r"|(?:선택|고르)(?:하겠습니다|겠습니다|합니다|할게요)|(?:정답)?(?:이라고"
    r"|라고) 생각합니다|맞습니다|정답입니다)",
    r"\s?(?:सही है|हूँ|को चुनता हूँ)",
    r"'?[dt][iıuü]r|(?: (?:şıkkı|seçeneği))?(?:d[ıi]r)?(?: doğru(?:dur)?)?(?: olduğunu (?:düşünüyorum"
    r"|sanıyorum))?"
    r"|'?(?:y?[iıuü]) (?:seçiyorum|seçerim|işaretliyorum)",
    r"\s(?:верно|верный|верен|правильный(?: ответ)?|правильно)",
    r"\s(?:صحيحة?|صحيح)",
)
# Neither loop gives back what it took: all words are of one kind, and no letter is one of them.
_CHOOSES = re.compile(
    rf"(?P<words>[\s,，、:：-]*+(?:(?:{_WORDS}(?![^\W\u0900-\u097f])|{_UNSPACED_WORDS})[\s,，、:：;-]*+)*+)"
    r"[(「『]?(?-i:(?P<letter>[A-J]))[)」』]?(?P<text>[).:] ?[^\n]+)?"
    rf"(?:(?P<behind>{_BEHIND})|{_IS_BEHIND})?[\s.。!！।]*",
    re.IGNORECASE,
)
# "Da Paris die Hauptstadt ist, ist B richtig."
_REASON_FIRST = re.compile(
    r"(?:da|weil|puesto que|ya que|dado que|como|puisque|comme|étant donné que|poiché|siccome|dato che"
    r"|já que|visto que|omdat|aangezien|так как|поскольку"
    r"|(?:ich bin )?(?:mir )?nicht (?:ganz )?sicher(?=, aber)"
    r"|no estoy seguro(?=, pero)|je ne suis pas sûre?(?=, mais)) ?(?P<why>[^.!?\n]*?), "
    r"(?:(?:aber|pero|mais) )?(?P<then>[^,\n]+)",
    re.IGNORECASE,
)
# "B ist richtig, A und C sind falsch."
_OTHERS_WRONG = re.compile(
    r"(?P<then>[^,，;；\n]+)[,，;；] ?(?P<others>[A-J](?:[、,和及]{0,2} ?(?:(?:und|y|e|et|en) )?[A-J]){0,8})"
    r"(?: (?:ist|sind|es|son|est|sont|è|sono|é|são|is|zijn) (?:falsch|nicht (?:richtig|korrekt)"
    r"|incorrect[aeo]?s?|fauss?e?s?|sbagliat[aeio]|errad[ao]s?|onjuist|fout)"
    r"|(?:选?项|選項)?(?:均|都)?(?:是)?(?:错误?|錯誤?|不正确|不正確|不对))的?[.。!！]?"
)
# Longer sentences say more than their choice.
_LONGEST = 120
_SEPARATORS = " \t,，、:：;-"


def settled_abroad(sentence: str, options: ChoiceOptions) -> int | None:
    """None where the sentence has any other word, or names another text than that of its letter."""
    if len(sentence) > _LONGEST:
        return None
    found = _CHOOSES.fullmatch(sentence.strip())
    reason = None if found else _REASON_FIRST.fullmatch(sentence.strip())
    rejected = None if found else _OTHERS_WRONG.fullmatch(sentence.strip())
    longer = reason or rejected
    if longer:
        found = _CHOOSES.fullmatch(longer["then"])
    label = options.letters.get(found["letter"]) if found else None
    if reason and {name.label for name in options.names_in(reason["why"])} - {label}:
        return None
    if rejected and label in {options.letters.get(letter) for letter in rejected["others"]}:
        return None
    if found is None or label is None or not (found["words"].strip(_SEPARATORS) or found["behind"]):
        return None
    if not found["text"]:
        return label
    return label if options.being(found["text"].lstrip(").: ")) == label else None
