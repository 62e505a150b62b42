"""Make classes of protobuf messages from the text of their .proto file.

Code that protoc generates runs only with some versions of the protobuf library, and two files that define one
name cannot both be loaded into the library's common pool: a second copy of XLA's messages would break the
user's `import tensorflow`. So the definitions are text here, and each family of messages gets a pool of its
own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "int32": _Field.TYPE_INT32,
    "uint32": _Field.TYPE_UINT32,
    "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}
_COMMENT = re.compile(r"//[^\n]*")
_STATEMENT = re.compile(
    r"\s*(?:(?P<block>message|oneof)\s+(?P<title>\w+)\s*\{"
    r"|(?P<repeated>repeated\s+)?(?P<type>[\w.]+)\s+(?P<name>\w+)\s*=\s*(?P<number>\d+)\s*;"
    r"|(?P<close>\}))\s*"
)


def messages(package: str, proto: str) -> Mapping[str, type[Message]]:
    """Make the classes of the outermost messages defined in `proto`, by name.

    `proto` is the body of a proto3 file, of which this reads `message`, `oneof`, fields of the types in use
    here and `//` comments. An enum field is declared int32, a map field as the repeated entries that it is on
    the wire; fields that nobody reads may be left out, and a message that is to be decoded later may be
    declared `bytes`. Raises ValueError for any other text, TypeError for an unknown type.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    _define(file, _COMMENT.sub("", proto))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return MappingProxyType(
        {
            message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message.name}"))
            for message in file.message_type
        }
    )


def _define(file: descriptor_pb2.FileDescriptorProto, text: str) -> None:
    """Add the messages of `text` to `file`."""
    open_blocks: list[descriptor_pb2.DescriptorProto] = []
    oneof = False
    at = 0
    while at < len(text.rstrip()):
        match = _STATEMENT.match(text, at)
        if match is None or not (open_blocks or match["block"] == "message"):
            raise ValueError(f"not a definition of a message: {text[at : at + 60].strip()!r}")
        at = match.end()
        if match["block"] == "message":
            inside = open_blocks[-1].nested_type if open_blocks else file.message_type
            open_blocks.append(inside.add(name=match["title"]))
        elif match["block"] == "oneof":
            open_blocks[-1].oneof_decl.add(name=match["title"])
            oneof = True
        elif match["close"] and oneof:
            oneof = False
        elif match["close"]:
            open_blocks.pop()
        else:
            field = open_blocks[-1].field.add(name=match["name"], number=int(match["number"]))
            field.label = _Field.LABEL_REPEATED if match["repeated"] else _Field.LABEL_OPTIONAL
            field.type = _SCALARS.get(match["type"], _Field.TYPE_MESSAGE)
            if field.type == _Field.TYPE_MESSAGE:
                field.type_name = match["type"]
            if oneof:
                field.oneof_index = len(open_blocks[-1].oneof_decl) - 1
    if open_blocks:
        raise ValueError(f"the definition of the message {open_blocks[-1].name} has no end")
