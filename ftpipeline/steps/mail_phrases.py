"""How mails of each language open a quote, name a sender and end: what the reply stripper knows of languages."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    """Phrases of one language, as regular expressions to be matched without regard to case.

    Attributes:
        opens: word that an attribution such as `On Monday, Ann wrote:` begins with.
        wrote: its verb.
        sender: name of the first header of a quoted mail.
        sign_off: ends of a letter, without punctuation.
        device: beginnings of what mail programs add.
    """

    opens: str
    wrote: str
    sender: str
    sign_off: str
    device: str


LANGUAGES: Mapping[str, Phrases] = {
    "da": Phrases("den", "skrev", "fra", r"(?:med )?venlig hilsen|mvh", "Sendt fra min"),
    "de": Phrases(
        "am|em",
        "schrieb",
        "von",
        r"mfg|(?:mit )?(?:freundlichen|viele|beste|liebe) grüßen?",
        "Von meinem|Gesendet von (?:meinem|mein)",
    ),
    "en": Phrases(
        "on",
        "wrote",
        "from",
        r"(?:(?:kind|best|warm|many) )?(?:regards|wishes)|(?:many )?thanks|thank you|cheers|sincerely|yours(?: \w+)?",
        "Sent from my|Get Outlook for",
    ),
    "es": Phrases("el", "escribió", "de", "saludos", "Enviado desde mi"),
    "fr": Phrases("le", "a écrit", "de", "cordialement", "Envoyé de mon"),
    "it": Phrases("il", "ha scritto", "da", "cordiali saluti", "Inviato da"),
    "nl": Phrases("op", "schreef", "van", "met vriendelijke groet", "Verstuurd vanaf mijn"),
    "no": Phrases("den", "skrev", "fra", r"(?:med )?vennlig hilsen|mvh", "Sendt fra min"),
    "pl": Phrases("w dniu", "napisała?", "od", "pozdrawiam", "Wysłane z"),
    "pt": Phrases("em", "escreveu", "de", "cumprimentos|atenciosamente", "Enviado do meu"),
    "sv": Phrases("den", "skrev", "från", r"(?:med )?vänliga hälsningar|mvh", "Skickat från min"),
}
"""Language code (ISO 639-1) to its phrases."""
