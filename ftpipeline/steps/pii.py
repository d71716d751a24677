"""Replaces personal data in a text by typed placeholders.

Laws: a second run finds nothing, and the time is linear in the text: repetitions are bounded or possessive, and a run
of characters is entered at its start only. Numbers are replaced where a checksum or the shape of a phone number speaks
for it; order numbers, IP addresses, versions and measurements stay.
"""

import re
from collections import Counter
from collections.abc import Callable

# What is glued to an address goes with it, or a second run would find another address there.
_EMAIL = re.compile(r"(?<![\w.+%'-])[\w.+%'-]++@(?:[\w-]++\.)+[^\W\d_]{2,}(?:[.+%'-]*+[\w@]++)*+")

_CARD = re.compile(r"(?<!\w)(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}|\d{4}([ -]?)\d{6}\2\d{5}|\d{13,19})(?!\w)", re.ASCII)

# What issuers of payment cards give out (ISO 7812), by first digits and length.
_ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[0689]\d{12}|6\d{15,18}", re.ASCII
)

# Lengths of account numbers by country (ISO 13616); without them a trailing word could not be told from the number.
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "EE": 20,
    "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GI": 23, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
    "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28,
    "PT": 25, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TR": 26, "UA": 29,
}  # fmt: skip
_IBAN = re.compile(
    r"(?<!\w)(?:"
    + "|".join(rf"{country}\d\d(?:[ -]?[A-Z0-9]){{{length - 4}}}" for country, length in _IBAN_LENGTHS.items())
    + r")(?!\w)",
    re.ASCII | re.IGNORECASE,
)

# Numbers that a plus or a bracket marks, and those that only their shape shows. The second kind is looked for where a
# run of digits starts, or right behind another: what stands inside a longer run (2024 1130 0917) is part of something
# else.
_MARKED_PHONE = re.compile(
    r"""(?<!\w)(?<!\[PHONE\])(?:
      \+[1-9](?:[ ()./-]{0,2}\d){7,14}               # +44 20 7946 0018
    | \([2-9]\d\d\)[ -]?[2-9]\d\d[ -]\d{4}           # (415) 555-0133
    | \(0\)[ ]?[1-9]\d{1,3}[ /-]?\d{3,4}(?:[ -]?\d{3,5})?   # (0)171-5550155
    )(?!\w)""",
    re.VERBOSE | re.ASCII,
)
_DIGIT_RUN = re.compile(r"(?<!\w)\d(?:[ ./-]?\d)*+\w*+", re.ASCII)
_PLAIN_PHONE = re.compile(
    r"""(?:
      (?:1[ .-])?[2-9]\d\d([.-])[2-9]\d\d\1\d{4}     # 312-555-0155
    | 00[1-9]\d?[ ]\d{1,4}(?:[ -]?\d){5,10}          # 0044 20 7946 0018
    | 0[1-9](?P<pair>[ .-])\d\d(?:(?P=pair)\d\d){3}      # 01 99 00 43 21
    | 0[1-9]\d{1,3}[ /-]\d{3,4}(?:[ -]?\d{3,5})?     # 030/901820, 0171 1234567
    )(?!\w)(?P<after>[ ./-]?)""",
    re.VERBOSE | re.ASCII,
)


def scrub(text: str) -> tuple[str, Counter[str]]:
    """Return the text with `[EMAIL]`, `[IBAN]`, `[CARD]` and `[PHONE]` for personal data, and how many of each."""
    counts: Counter[str] = Counter()
    text, counts["[EMAIL]"] = _EMAIL.subn("[EMAIL]", text)
    text, counts["[IBAN]"] = _replaced(text, "[IBAN]", _IBAN, _mod_97)
    text, counts["[CARD]"] = _replaced(text, "[CARD]", _CARD, _luhn)
    text, counts["[PHONE]"] = _MARKED_PHONE.subn("[PHONE]", text)
    text, plain = _plain_phones_replaced(text)
    counts["[PHONE]"] += plain
    return text, +counts


def _replaced(text: str, placeholder: str, pattern: re.Pattern[str], genuine: Callable[[str], bool]) -> tuple[str, int]:
    """Replace the genuine matches; behind a false one the search goes on with its second character."""
    pieces: list[str] = []
    written = position = 0
    while match := pattern.search(text, position):
        position = match.start() + 1
        if genuine(match[0]):
            pieces += text[written : match.start()], placeholder
            written = position = match.end()
    return "".join([*pieces, text[written:]]), len(pieces) // 2


def _plain_phones_replaced(text: str) -> tuple[str, int]:
    pieces: list[str] = []
    written = found = 0
    for run in _DIGIT_RUN.finditer(text):
        position = run.start()
        while phone := _PLAIN_PHONE.match(text, position, run.end()):
            pieces += text[written:position], "[PHONE]", phone["after"]
            written = position = phone.end()
            found += 1
    return "".join([*pieces, text[written:]]), found


def _luhn(text: str) -> bool:
    number = re.sub(r"[ -]", "", text)
    if not _ISSUER.fullmatch(number):  # one in ten order numbers passes the checksum by chance
        return False
    digits = [int(digit) for digit in number]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _mod_97(text: str) -> bool:
    account = re.sub(r"[ -]", "", text).upper()
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
