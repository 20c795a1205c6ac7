"""Small drawings in the pages themselves, so that no page needs anything else."""

from __future__ import annotations

from zlib import crc32

from environments.browser_use.sites.markup import Markup, h

__all__ = ["picture"]

SHAPES = {
    "kettles": "M36 80h48l-6-46H44zM50 34q10-14 20 0M84 44q16 4 8 24l-9 4M36 50l-14-8",
    "teapots": "M34 76h46q14-30-8-40H48q-24 6-14 40zM54 36v-6h12v6M86 46q16 2 6 20M34 56l-14-12",
    "mugs": "M40 34h36v46H40zM76 44q20 0 18 13t-18 13",
    "lamps": "M38 82h36M56 82l-8-30 24-18M60 26l24 18-10 8-20-18z",
    "headphones": "M34 66v-8q2-30 26-30t26 30v8M30 62h10v20H30zM80 62h10v20H80z",
    "backpacks": "M38 82V44q2-16 22-16t22 16v38zM46 60h28v22H46zM52 28q0-10 8-10t8 10",
    "world": "M60 24a32 32 0 1 0 .1 0M28 56h64M60 24q-26 32 0 64M60 24q26 32 0 64",
    "business": "M26 84V60h14v24M52 84V44h14v40M78 84V30h14v54M20 84h80",
    "science": "M52 26h16M56 26v22L36 84h48L64 48V26M44 70h32",
    "culture": "M30 34h60v44H30zM42 34v44M78 34v44M30 48h12M30 64h12M78 48h12M78 64h12",
    "sport": "M60 26a30 30 0 1 0 .1 0M36 40q24 16 48 0M36 72q24-16 48 0",
}


def picture(kind: str, key: str) -> Markup:
    """A drawing of this kind, its colours by the key."""
    hue = crc32(key.encode()) % 360
    return h(
        '<svg viewBox="0 0 120 104" preserveAspectRatio="xMidYMid slice" aria-hidden="true">'
        '<rect width="120" height="104" fill="hsl({hue} 42% 86%)"/>'
        '<circle cx="60" cy="56" r="40" fill="hsl({hue} 45% 78%)"/>'
        '<path d="{shape}" fill="none" stroke="hsl({hue} 45% 30%)" stroke-width="4"'
        ' stroke-linejoin="round" stroke-linecap="round"/></svg>',
        hue=hue,
        shape=SHAPES[kind],
    )
