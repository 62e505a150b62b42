"""Messages defined by text, and that the ones defined so are XLA's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError
from upstream_protos import file_descriptor

from roofline.protobuf import messages
from roofline.traces.xplane import proto as xplane_schema
from roofline.xla.hlo import proto

Field = descriptor_pb2.FieldDescriptorProto


def test_fields_are_what_the_text_says():
    kinds = messages(
        "test.small",
        """
        message Line {
          message Point {
            int64 x = 1;
          }
          string name = 1;  // fields in any order
          repeated Point points = 4;
          oneof value {
            double number = 2;
            bytes text = 3;
          }
          repeated int32 codes = 70;
        }
        message Plane { Line line = 2; Line.Point at = 3; }
        """,
    )
    assert list(kinds) == ["Line", "Plane"]
    line = kinds["Line"](name="a", number=0.0, codes=[1, 2])
    line.points.add(x=-1)
    assert line.WhichOneof("value") == "number"  # one in a oneof is there though it is 0
    # name: tag 1<<3|2, length, text. number: tag 2<<3|1, 8 bytes. points: tag 4<<3|2, length 11, then tag 1<<3|0 and
    # -1 as a varint of 64 bits in groups of 7: nine bytes ff and a 01. codes: tag 70<<3|2 = 562 = 0xb2 0x04, packed.
    encoded = b"\x0a\x01a" + b"\x11" + bytes(8) + b"\x22\x0b\x08" + b"\xff" * 9 + b"\x01" + b"\xb2\x04\x02\x01\x02"
    assert line.SerializeToString(deterministic=True) == encoded
    plane = kinds["Plane"].FromString(b"\x12\x03\x0a\x01b" + b"\x1a\x02\x08\x05")
    assert plane.line.name == "b"
    assert plane.at.x == 5
    assert plane.line.WhichOneof("value") is None


def test_pools_are_private():
    first = messages("test.one", "message A { int64 x = 1; }")["A"]
    second = messages("test.one", "message A { string y = 1; }")["A"]
    assert first(x=1).SerializeToString() != second(y="1").SerializeToString()
    for kind in (first, proto.HloProto, xplane_schema.XSpace):
        with pytest.raises(KeyError):
            descriptor_pool.Default().FindMessageTypeByName(kind.DESCRIPTOR.full_name)


@pytest.mark.parametrize(
    "text",
    [
        "message A { int64 x = 1; ",
        "message A { int64 x; }",
        "message A { map<int64, A> x = 1; }",
        "int64 x = 1;",
        "message A { int64 x = 1; } }",
    ],
)
def test_text_that_is_no_definition(text):
    with pytest.raises(ValueError, match="definition"):
        messages("test.bad", text)


def test_type_that_is_not_there():
    with pytest.raises(TypeError):
        messages("test.bad", "message A { sint7 x = 1; }")


def test_strings_are_utf8_or_the_message_does_not_decode():
    with pytest.raises(DecodeError):
        proto.HloModuleProto.FromString(b"\x0a\x01\xff")
    assert xplane_schema.XPlane.FromString(b"\x12\x01\xff").name == b"\xff"


def all_messages(file):
    """name -> DescriptorProto of all messages of a file, "Outer.Inner" for nested ones."""

    def walk(inside, prefix):
        for one in inside:
            yield prefix + one.name, one
            yield from walk(one.nested_type, f"{prefix}{one.name}.")

    return dict(walk(file.message_type, ""))


def our_file(kind):
    """The file that `kind` was defined in."""
    file = descriptor_pb2.FileDescriptorProto()
    kind.DESCRIPTOR.file.CopyToProto(file)
    return file


def differences(ours, theirs, package, also_bytes):
    """Fields of `ours` that are not the field of `theirs` with that number, as sentences, and how many are."""
    found, same = [], 0
    for name, message in ours.items():
        upstream = {field.number: field for field in theirs[name].field}
        for field in message.field:
            other = upstream.get(field.number)
            label = f"{name}.{field.name} = {field.number}"
            if other is None or other.name != field.name:
                found.append(f"{label} is {other and other.name}")
                continue
            if (field.label == Field.LABEL_REPEATED) != (other.label == Field.LABEL_REPEATED):
                found.append(f"{label} is repeated in one only")
            if field.HasField("oneof_index") and not other.HasField("oneof_index"):
                found.append(f"{label} is in no oneof")
            kind = Field.TYPE_INT32 if other.type == Field.TYPE_ENUM else other.type
            replaced = also_bytes and field.type == Field.TYPE_BYTES and kind in (Field.TYPE_STRING, Field.TYPE_MESSAGE)
            if field.type != kind and not replaced:
                found.append(f"{label} has type {field.type}, not {kind}")
            if field.type == Field.TYPE_MESSAGE:
                our_type = field.type_name.removeprefix(f".{package}.")
                if our_type != other.type_name.split(".", 2)[-1].removeprefix("profiler."):
                    found.append(f"{label} is a {our_type}, not {other.type_name}")
            same += 1
    return found, same


def test_hlo_messages_are_those_of_xla():
    theirs = all_messages(file_descriptor("compiler/xla/xla_data_pb2.py"))
    theirs |= all_messages(file_descriptor("compiler/xla/service/hlo_pb2.py"))
    ours = all_messages(our_file(proto.HloProto))
    found, same = differences(ours, theirs, "roofline.hlo", also_bytes=False)
    assert found == []
    assert same > 190


def test_xplane_messages_are_those_of_xla():
    theirs = all_messages(file_descriptor("tsl/profiler/protobuf/xplane_pb2.py"))
    ours = all_messages(our_file(xplane_schema.XSpace))
    columns = {name: ours.pop(name) for name in ("XEvents", "XStats")}
    found, same = differences(ours, theirs, "roofline.xplane", also_bytes=True)
    assert found == []
    assert same > 25
    for name, message in columns.items():
        single = {(field.number, field.name, field.type) for field in ours[name[:-1]].field}
        assert {(field.number, field.name, field.type) for field in message.field} == single
        assert all(field.label == Field.LABEL_REPEATED for field in message.field)


def test_the_names_of_element_types_are_those_of_xla():
    enums = {enum.name: enum for enum in file_descriptor("compiler/xla/xla_data_pb2.py").enum_type}
    assert {value.number: value.name for value in enums["PrimitiveType"].value} == proto.PRIMITIVE_TYPES


def test_works_without_the_c_implementation_of_protobuf():
    """protobuf in pure Python is another implementation of the same interface, slow but complete."""
    code = (
        "from google.protobuf.internal import api_implementation as a\n"
        "from roofline.xla.hlo.proto import HloProto\n"
        "from roofline.traces.xplane.proto import XSpace\n"
        "p = HloProto(); p.hlo_module.computations.add(name='main').instructions.add(id=7, operand_ids=[1, 2])\n"
        "assert HloProto.FromString(p.SerializeToString()) == p\n"
        "print(a.Type())"
    )
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "python"
