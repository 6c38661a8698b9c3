"""What tests of the page of a pile share."""

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> <b>bold</b> $title {{x}} &amp;"
"""A text that would be markup, were it not shown as it is."""
