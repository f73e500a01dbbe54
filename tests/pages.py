"""Pages that need nothing else, for the tests of reports and of the executable paper."""

import re


def assert_self_contained(text):
    """Nothing is loaded from elsewhere, and links within the page have a target."""
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # names, not links
    assert not re.search(r"https?:|@import|url\((?!#)|<script|<link|<iframe|<object|<embed|\bsrc=", text)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in re.findall(r'href="([^"]*)"', text))
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|href=")#([\w.-]+)', text)) <= set(ids)
    assert all('aria-label="' in tag for tag in re.findall("<svg[^>]*>", text))
    assert 'name="viewport"' in text and "@media print" in text
