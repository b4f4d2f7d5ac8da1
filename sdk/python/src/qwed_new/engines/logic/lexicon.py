"""The words of the small English that the logic engine reads: plurals, verbs, comparatives, and words it does not
read."""

from __future__ import annotations

import re

_PLURALS = {
    "men": "man", "women": "woman", "people": "person", "children": "child", "mice": "mouse", "geese": "goose",
    "feet": "foot", "teeth": "tooth",
    "wolves": "wolf", "knives": "knife", "lives": "life", "wives": "wife", "leaves": "leaf", "fish": "fish",
    "sheep": "sheep", "deer": "deer",
    "oxen": "ox", "criteria": "criterion", "firemen": "fireman", "policemen": "policeman", "humans": "human",
    "thieves": "thief", "shelves": "shelf", "calves": "calf", "halves": "half", "loaves": "loaf", "germans": "german",
    "romans": "roman",
}  # fmt: skip
# Singular words that end in s.
_SINGULAR = frozenset(
    "bus gas lens news physics mathematics politics economics series species zeus moses james charles paris".split())

# The measure of each comparative, and whether it means more of the measure.
COMPARATIVES = {
    **{c: (d, True) for c,
        d in (("taller", "tall"), ("older", "old"), ("bigger", "big"), ("larger", "big"), ("faster", "fast"),
            ("quicker", "fast"),
       ("heavier", "heavy"), ("longer", "long"), ("higher", "high"), ("richer", "rich"), ("wealthier", "rich"),
       ("stronger", "strong"), ("smarter", "smart"),
       ("warmer", "warm"), ("hotter", "warm"), ("brighter", "bright"), ("wider", "wide"), ("deeper", "deep"),
       ("later", "late"), ("greater", "big"), ("more", "big"),
       ("harder", "hard"), ("louder", "loud"), ("better", "good"), ("happier", "happy"), ("cleverer", "smart"),
       ("thicker", "thick"), ("kinder", "kind"))},
    **{c: (d, False) for c,
        d in (("shorter", "short"), ("younger", "old"), ("smaller", "big"), ("slower", "fast"), ("lighter", "heavy"),
            ("lower", "high"), ("less", "big"),
       ("poorer", "rich"), ("weaker", "strong"), ("colder", "warm"), ("cooler", "warm"), ("narrower", "wide"),
       ("shallower", "deep"), ("earlier", "late"),
       ("worse", "good"), ("cheaper", "expensive"), ("easier", "difficult"), ("thinner", "thick"),
       ("sadder", "happy"))},
}  # fmt: skip
DIMENSIONS = {
    "tall": "tall", "old": "old", "big": "big", "large": "big", "fast": "fast", "heavy": "heavy", "long": "long",
    "high": "high",
              "rich": "rich", "strong": "strong", "smart": "smart", "expensive": "expensive", "difficult": "difficult",
              "intelligent": "smart",
              "important": "important", "beautiful": "beautiful", "dangerous": "dangerous", "good": "good",
              "happy": "happy", "warm": "warm",
              "hot": "warm", "young": "-old", "small": "-big", "slow": "-fast", "poor": "-rich", "weak": "-strong",
              "cold": "-warm", "cheap": "-expensive"}  # fmt: skip

# Words whose meaning the grammar does not have: a statement with one of them proves only itself.
STRANGE = frozenset(
    "most many few several much more less than least almost nearly exactly only twice half some any every each all "
    "both none no nobody everyone everything anyone anything someone something nothing always never often usually "
    "sometimes seldom rarely probably possibly perhaps maybe likely before after while during since because although "
    "though despite however otherwise therefore so another other others else same different equal equals except "
    "besides unless until if then whether either neither nor and or but not who whom whose which that there would "
    "could might may should must ought supposed than as such by himself herself itself themselves each-other alone "
    "together mutually respectively too also even still just already yet again ever".split()
)
PRONOUNS = frozenset("he she it they him her them this that these those we you i his hers its their one".split())
# Verbs and adjectives of which a sentence with `it` states the weather or the time, not something about an object.
WEATHER = frozenset(
    "rain rains snow snows hail hails storm storms thunder thunders drizzle drizzles freeze freezes raining snowing "
    "hailing freezing sunny rainy cloudy windy foggy stormy dark cold hot warm wet dry late early night day noon "
    "midnight morning evening winter summer spring autumn monday tuesday wednesday thursday friday saturday sunday "
    "christmas".split()
)
TIMES = frozenset(
    "end deadline time hour minute day week weekend month year today tomorrow yesterday january february march april "
    "may june july august september october november december way law hand chance accident mistake nature sea".split())
QUANTITIES = frozenset(
    "two three four five six seven eight nine ten eleven twelve twenty fifty hundred thousand dozen million couple "
    "pair lots".split())
NUMERALS = frozenset("two three four five six seven eight nine ten eleven twelve".split())
SUPERLATIVES = frozenset(
    "best worst tallest shortest oldest youngest biggest largest smallest fastest slowest richest poorest strongest "
    "weakest smartest cleverest wisest kindest bravest happiest greatest longest highest lowest heaviest lightest "
    "brightest warmest coldest loudest cheapest finest".split())
# Irregular verbs in the past that are no other words, with their base forms.
PASTS = dict(p.split("/") for p in (
    "came/come went/go saw/see ate/eat ran/run won/win lost/lose got/get made/make took/take gave/give knew/know "
    "wrote/write said/say told/tell slept/sleep drank/drink drove/drive flew/fly sang/sing sat/sit stood/stand "
    "fell/fall felt/feel kept/keep met/meet paid/pay sent/send spent/spend taught/teach thought/think bought/buy "
    "broke/break caught/catch chose/choose brought/bring built/build sold/sell began/begin became/become "
    "forgot/forget stole/steal hid/hide rode/ride swam/swim wore/wear tore/tear shook/shake fought/fight hung/hang "
    "bit/bite blew/blow drew/draw froze/freeze grew/grow rang/ring spoke/speak swore/swear threw/throw woke/wake "
    "led/lead fed/feed lied/lie died/die told/tell held/hold heard/hear understood/understand did/do "
    "left/leave").split())
# Participles of irregular verbs that are not the past.
PARTICIPLES = dict(p.split("/") for p in (
    "seen/see eaten/eat known/know written/write taken/take given/give driven/drive stolen/steal chosen/choose "
    "broken/break beaten/beat drawn/draw forgotten/forget hidden/hide spoken/speak sung/sing worn/wear thrown/throw "
    "bitten/bite shown/show shaken/shake torn/tear").split())
MODALS = frozenset("can must may will should could would might shall".split())
# Adjectives that are written with a capital letter.
NATIONALITY = re.compile(
    r"\w+(?:ean|ian|ican|ish|ese|ist)|french|german|greek|roman|dutch|swiss|czech|thai|catholic|muslim|iraqi|israeli")
# `a red car` means that it is red and that it is a car. `a tall woman` means only that she is a woman. Both rules hold
# only before these nouns: a hot dog is not a dog, and a French teacher may not be French.
INTERSECTIVE = frozenset(
    "red blue green yellow black white brown grey gray pink orange purple round wooden male female married unmarried "
    "pregnant blind deaf prime positive negative hungry thirsty".split())
SUBSECTIVE = frozenset(
    "tall short big small large little old young new good bad great nice kind happy sad rich poor strong weak fast "
    "slow heavy smart clever wise stupid brave honest famous beautiful ugly cheap expensive loud quiet important "
    "dangerous friendly skilled skilful skillful experienced lazy busy rude polite careful careless talented gifted "
    "excellent wonderful terrible fat thin clean dirty".split())
# Adjectives that name all who have the property: the brave. Before a verb such as `deserve`, only those that no noun
# follows without a verb.
CLASSES = frozenset(
    "brave rich poor blind deaf elderly wise strong weak young old sick wicked unemployed homeless innocent guilty "
    "dead".split())
ADJECTIVES = CLASSES | INTERSECTIVE | SUBSECTIVE | frozenset(
    "ill hungry greedy faithful foolish wounded injured living powerful privileged oppressed educated ignorant insane "
    "righteous just humble meek proud mighty fearful fearless curious free disabled".split())
PROFESSIONS = frozenset(
    "doctor lawyer teacher student nurse engineer artist musician actor writer poet painter farmer soldier officer "
    "politician prince princess baker scientist philosopher programmer employee neighbour neighbor pilot sailor "
    "president butler gardener".split())
PERSONS = PROFESSIONS | frozenset(
    "man woman person boy girl child singer dancer judge king queen driver cook worker manager friend brother sister "
    "mother father wife husband son daughter boss".split())
HEADS = PERSONS | frozenset(
    "player runner swimmer cat car bike bicycle ball shirt dress hat coat bag table chair pen pencil cup plate flower "
    "rose apple number".split())
# Predicates of a kind as a whole, which its members do not have.
OF_KINDS = frozenset(
    "common numerous extinct rare widespread endangered abundant plentiful popular scarce ubiquitous prevalent "
    "diverse various".split())
# Words that may hold of several together and of none of them alone: cats and dogs are enemies.
OF_SEVERAL = frozenset(
    "similar different equal unequal alike compatible incompatible identical related unrelated separate distinct "
    "inseparable opposite opposed interchangeable connected linked united equivalent complementary meet fight differ "
    "mix agree disagree collide gather marry match coexist alternate combine compete resemble complement make form "
    "constitute friends enemies twins siblings brothers sisters cousins neighbours neighbors partners colleagues "
    "rivals lovers spouses opposites halves parts parents strangers allies relatives mates".split())
COPULAS = frozenset("is are was were am".split())
PREPOSITIONS = frozenset(
    "in on at to from with for of about near under over behind beside into onto through after against".split())
# Words that the grammar does not read anywhere, so that a text with one of them is not taken apart.
UNREAD = STRANGE - frozenset(
    "some any every each all both no none nobody everyone everything anyone anything someone something nothing one "
    "more less least than as if then whether either neither nor and or but not who whose which that there must should "
    "might could would may himself herself itself by unless until".split()
)
_NEGATIVE = ("un", "in", "im", "ir", "il", "non", "non-", "dis")


def singular(word: str) -> str:
    """Return a noun in the singular."""
    if word in _PLURALS:
        return _PLURALS[word]
    if word in _SINGULAR:
        return word
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if re.search(r"(?:sses|xes|ches|shes|zes)$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "ous")):
        return word[:-1]
    return word


def is_plural(word: str) -> bool:
    """Report whether a word is a noun in the plural by its form."""
    return word in _PLURALS or singular(word) != word


def base_form(verb: str) -> str:
    """Return the base form of a verb in the third person singular."""
    if verb in ("has", "have"):
        return "have"
    if verb in ("does", "goes"):
        return verb[:-2]
    if len(verb) > 4 and verb.endswith("ies"):
        return verb[:-3] + "y"
    if re.search(r"(?:ss|x|ch|sh|zz)es$", verb):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def third_person(verb: str) -> str:
    """Return the third person singular of a base form."""
    if verb == "have":
        return "has"
    if re.search(r"(?:s|x|ch|sh|z|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


def is_past(word: str) -> bool:
    """Report whether a word is a verb in the past by its form."""
    regular = word.endswith("ed") and len(word) > 3 and not word.endswith("eed")
    return word in PASTS or regular or word in ("agreed", "disagreed", "freed", "guaranteed")


def past(verb: str) -> str:
    """Return `did` with the stem of a verb that is in the past, or that follows `did`. The stem has no final e,
    because `baked` does not show whether the verb has one."""
    stem = PASTS.get(verb, verb)
    if stem == verb and is_past(verb):
        stem = verb[:-3] + "y" if verb.endswith("ied") else verb[:-2]
        if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "sl":
            stem = stem[:-1]
    return "did " + (stem[:-1] if stem.endswith("e") and len(stem) > 3 else stem)


def opposite(word: str) -> str:
    """Return the word that a negative prefix denies, such as `mortal` for `immortal`, or "" for other words."""
    for prefix in _NEGATIVE:
        rest = word.removeprefix(prefix)
        if rest != word and len(rest) > 3:
            return rest
    return ""


def related(a: str, b: str) -> bool:
    """Report whether two different phrases share a word, or words of one stem, so that one may follow from the
    other."""
    for x in words_of(a):
        for y in words_of(b):
            shared = len(x) if x == y else _common(x, y)
            if x == y or shared >= 5:
                return True
            if shared >= 2 and max(x, y, key=len)[shared:] in _ENDINGS and shared == min(len(x), len(y)):
                return True
    return False


def words_of(text: str) -> set[str]:
    """Return the words of a phrase that have a meaning on their own; y is written as i, as before an ending."""
    return {re.sub(r"y$", "i", _PLURALS.get(w, w)) for w in set(re.findall(r"[^\W\d_]+", text)) - _SMALL}


_ENDINGS = frozenset("i s es d ed r er st est ing ning ting ly ness n en ter ness".split())
_SMALL = frozenset("a an the of in on at to is are be can must will may have did and with for from".split())


def _common(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
