# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""docs/architecture.svg: its texts fit, whatever font a reader has."""

import xml.etree.ElementTree as xml

from matplotlib import font_manager, ft2font
from workspace import ROOT

SVG = "{http://www.w3.org/2000/svg}"
# DejaVu Sans, Debian's sans-serif, is as wide as any that is common.
FONTS = {
    weight: ft2font.FT2Font(
        font_manager.findfont(
            font_manager.FontProperties(family="DejaVu Sans", weight=weight)
        )
    )
    for weight in ("normal", "bold")
}
GAP = 4  # user units between a text and the next line


def width(text):
    """In the drawing's units."""
    font = FONTS[text.get("font-weight", "normal")]
    size = 12 if text.get("class") == "small" else float(text.get("font-size", 14))
    font.set_size(size, 72)
    font.set_text(text.text, 0)
    return font.get_width_height()[0] / 64


def edges(rect):
    x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
    return x, y, x + float(rect.get("width")), y + float(rect.get("height"))


def test_texts_stay_in_their_boxes():
    drawing = xml.parse(ROOT / "docs/architecture.svg").getroot()
    boxes = [edges(rect) for rect in drawing.iter(SVG + "rect")]
    texts = list(drawing.iter(SVG + "text"))
    assert len(texts) > 30 and len(boxes) > 8
    for text in texts:
        x, y = float(text.get("x")), float(text.get("y"))
        around = [b for b in boxes if b[0] <= x < b[2] and b[1] < y < b[3]]
        right = min(b[2] for b in around)
        beside = [b[0] for b in boxes if b[0] > x and b[1] < y < b[3]]
        room = min([right, *beside]) - GAP - x
        assert width(text) <= room, f"{text.text!r}: {width(text):.0f} > {room:.0f}"
        assert max(b[1] for b in around) < y - 8, f"{text.text!r} is cut off above"
