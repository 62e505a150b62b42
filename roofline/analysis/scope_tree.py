"""A profile whose scopes are cut to the upper levels of their tree."""

from __future__ import annotations

from msgspec.structs import replace

from roofline.core.schema import Profile
from roofline.core.scopes import folded


def to_depth(profile: Profile, depth: int | None) -> Profile:
    """Cut scopes to at most `depth` parts where it is given, with repeated layers folded ("encoder/layer.*")."""
    classes = [""] * len(profile.scopes)
    for op in profile.ops:  # distinct scopes are few; what most of their ops do is what the first one does
        classes[op.scope] = classes[op.scope] or profile.signatures[op.signature].op_class
    names = folded(profile.scopes, [0.0] * len(profile.scopes), classes)
    return replace(profile, scopes=tuple("/".join(name.split("/")[:depth]) for name in names))
