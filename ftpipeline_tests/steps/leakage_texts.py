"""Random texts that overlap as templates and their edits do, in every kind of character that is treated apart."""

from hypothesis import strategies as st

RUN = [f"word{n}" for n in range(16)]

# Capital sigma, dotted I, characters that fold to several or compose with the one before, scripts without blanks,
# letters of the higher planes, a lone surrogate, separators of every length.
ODD = [
    *[
        "\u03a3\u0391\u03a3",
        "\u0130stanbul",
        "stra\u00dfe",
        "\u1e9e",
        "\ufb01n",
        "\u338f",
        "\u2460",
        "\u01c5",
        "\u13a0",
    ],
    *[
        "\u017f",
        "\u212a",
        "cafe\u0301",
        "\uac00\uac01",
        "\u1100\u1161",
        "\u037a",
        "\ufe70",
        "\u00dcn\u00ef",
        "don\u2019t",
    ],
    *["今天天气很好我们去公园", "ฉันต้องการคืนสินค้า", "\U00020000\U00020001", "👍", "\u2026", "\ud800", "", "!!"],
]

_runs = st.builds(lambda start, size: RUN[start : start + size], st.integers(0, 15), st.integers(0, 16))
_parts = _runs | st.lists(st.sampled_from(ODD) | st.text(max_size=3), max_size=3)
texts = st.builds(
    lambda parts, blank: blank.join(word for part in parts for word in part),
    st.lists(_parts, max_size=4),
    st.sampled_from([" ", "  ", ", ", "\n"]),
)
sides = st.lists(texts, max_size=8)
