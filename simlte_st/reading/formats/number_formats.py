"""Show the numbers of workbooks as Excel does, by their number formats.

Formats with fractions, conditions, or several groups of digits are not interpreted: the number is shown plainly.
"""

from __future__ import annotations

import contextlib
import decimal
import re
from datetime import datetime, timedelta

BUILT_IN = {
    "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "11": "0.00E+00", "15": "d-mmm-yy",
    "16": "d-mmm", "17": "mmm-yy", "18": "h:mm AM/PM", "19": "h:mm:ss AM/PM", "20": "h:mm", "21": "h:mm:ss",
    "37": "#,##0;(#,##0)", "38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)",
    "45": "mm:ss", "46": "[h]:mm:ss",
    "14": "yyyy-mm-dd", "22": "yyyy-mm-dd hh:mm",  # Excel shows these in the reader's language
}  # fmt: skip
"""The formats that a workbook refers to by number only."""

_MAX_FORMAT = 255  # characters, as in Excel
_QUOTED = r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|[_*].'  # literal text, a currency, and the space of a character
_SECTION = re.compile(r'((?:"[^"]*"|\\.|[^;"\\])*)(?:;|$)', re.DOTALL)
_NUMBER = re.compile(rf"{_QUOTED}|\[[^\]]*\]|([0#?.,]*[0#?][0#?.,]*(?:E[+-]?0+)?)|(.)", re.DOTALL)
_MOMENT = re.compile(
    rf"{_QUOTED}|\[(h+|\0+|s+)\]|\[[^\]]*\]|(am/pm|a/p|y+|m+|d+|h+|\0+|s+(?:\.0+)?)|(.)", re.IGNORECASE | re.DOTALL
)
_PLAIN = re.compile(r"general|[@/]|\[[<>=]", re.IGNORECASE)
_MINUTES = re.compile(r"(h+\]?[^a-z]*)(m+)|()(m+)(?=\]?[^a-z]*s)", re.IGNORECASE)  # replaced by NUL; other m are months
_UNITS = {"h": 3600, "\0": 60, "s": 1}
_NAMES = {
    "yy": "%y", "yyy": "%Y", "yyyy": "%Y", "mmm": "%b", "mmmm": "%B", "ddd": "%a", "dddd": "%A", "am/pm": "%p",
    "a/p": "%p",
}  # fmt: skip


def read_number(number: int | float, code: str, epoch: datetime) -> tuple[object, str]:
    """Return the value of a number with a format (a number, or a date), and the value as shown.

    Times of day, durations, and numbers with leading zeros, such as postal codes, have the shown text as their value.
    """
    sections = [match[1] for match in _SECTION.finditer(code[:_MAX_FORMAT])]
    clock = _MINUTES.sub(lambda match: (match[1] or "") + "\0" * len(match[2] or match[4]), sections[0])
    fields = {(match[4] or match[5])[0].lower() for match in _MOMENT.finditer(clock) if match[4] or match[5]}
    if fields and number >= 0:
        with contextlib.suppress(OverflowError):  # after the year 9999
            lost = number < 60 and epoch.year < 1900  # Excel counts a 29 February 1900
            moment = epoch + timedelta(days=int(lost), seconds=round(number * 86_400))
            shown = _show_moment(moment, round(number * 86_400), clock)
            value = moment if fields & {"h", "\0", "s"} else moment.date()
            return (value if "y" in fields else shown), shown
    shown = _show_number(number, [""] if fields else sections)
    return (shown if sections[0].startswith("00") else number), shown


def _show_moment(moment: datetime, seconds: int, code: str) -> str:
    hour = (moment.hour % 12 or 12) if re.search("am/pm|a/p", code, re.IGNORECASE) else moment.hour
    values = {"y": moment.year, "m": moment.month, "d": moment.day, "h": hour, "\0": moment.minute, "s": moment.second}
    parts = []
    for match in _MOMENT.finditer(code):
        total, field = (match[4] or "").lower(), (match[5] or "").lower()
        if total:
            parts.append(f"{seconds // _UNITS[total[0]]:0{len(total)}}")
        elif field in _NAMES:
            parts.append(moment.strftime(_NAMES[field]))
        elif field:
            parts.append(f"{values[field[0]]:0{min(len(field), 2)}}")
        else:
            parts.append(match[1] or match[2] or match[3] or match[6] or "")
    return "".join(parts).strip()


def _show_number(number: int | float, sections: list[str]) -> str:
    choice = 1 if number < 0 and sections[1:2] > [""] else 2 if number == 0 and sections[2:3] > [""] else 0
    tokens = list(_NUMBER.finditer(sections[choice]))
    bare = re.sub(_QUOTED, "", sections[choice])
    if not sections[choice] or _PLAIN.search(bare) or sum(token[4] is not None for token in tokens) > 1:
        return f"{number:.15g}" if isinstance(number, float) else str(number)
    percents = sum(token[5] == "%" for token in tokens)
    shown = "".join(
        _digits(abs(number), token[4], percents) if token[4] else token[1] or token[2] or token[3] or token[5] or ""
        for token in tokens
    )
    return ("-" if number < 0 and choice == 0 and re.search("[1-9]", shown) else "") + shown.strip()


def _digits(number: int | float, pattern: str, percents: int) -> str:
    """Return a number in a pattern such as ``#,##0.00``; each percent sign multiplies it by 100."""
    mantissa, exponent, _ = pattern.partition("E")
    thousands = len(mantissa) - len(mantissa.rstrip(","))  # each divides by 1,000
    whole, _, decimals = mantissa.rstrip(",").partition(".")
    value = decimal.Decimal(str(number)).scaleb(2 * percents - 3 * thousands)
    if exponent:
        return f"{float(value):.{len(decimals)}E}"
    step = decimal.Decimal(1).scaleb(-len(decimals))
    value = value.quantize(step, decimal.ROUND_HALF_UP, decimal.Context(prec=400))
    head, _, tail = (f"{value:,f}" if "," in whole else f"{value:f}").partition(".")
    head = head.zfill(whole.count("0")) if "0" in whole or head != "0" else ""
    tail = tail[: decimals.count("0")] + tail[decimals.count("0") :].rstrip("0")
    return head + ("." + tail if tail else "")
