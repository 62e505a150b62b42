"""The messages of a profiler trace (XSpace), as far as reading its events needs them.

Field names and numbers are those of profiler/protobuf/xplane.proto (openxla/xla, tsl); a test holds them against
the copy that TensorFlow installs. Two things differ from it, neither of which the bytes can tell. Strings are
`bytes`, as a name that is not UTF-8 is no reason to refuse a trace; and a message that is decoded piece by
piece, or only when somebody asks for it, is `bytes` where it is contained.
"""

from __future__ import annotations

from roofline.protobuf import messages

_CLASSES = messages(
    "roofline.xplane",
    """
    message XSpace {
      repeated bytes planes = 1;  // of XPlane
      repeated bytes errors = 2;
      repeated bytes warnings = 3;
    }

    message XPlane {
      message EventMetadataEntry {
        int64 key = 1;
        XEventMetadata value = 2;
      }
      message StatMetadataEntry {
        int64 key = 1;
        XStatMetadata value = 2;
      }
      bytes name = 2;
      repeated bytes lines = 3;  // of XLine
      repeated EventMetadataEntry event_metadata = 4;
      repeated StatMetadataEntry stat_metadata = 5;
      repeated bytes stats = 6;  // of XStat
    }

    message XLine {
      bytes name = 2;
      int64 timestamp_ns = 3;
      repeated bytes events = 4;  // of XEvent
      bytes display_name = 11;
    }

    message XEvent {
      int64 metadata_id = 1;
      oneof data {
        int64 offset_ps = 2;
        int64 num_occurrences = 5;
      }
      int64 duration_ps = 3;
      repeated bytes stats = 4;  // of XStat
    }

    message XEventMetadata {
      bytes name = 2;
      bytes display_name = 4;
      repeated bytes stats = 5;  // of XStat
    }

    message XStatMetadata {
      bytes name = 2;
    }

    message XStat {
      int64 metadata_id = 1;
      oneof value {
        double double_value = 2;
        uint64 uint64_value = 3;
        int64 int64_value = 4;
        bytes str_value = 5;
        bytes bytes_value = 6;
        uint64 ref_value = 7;
      }
    }

    // XEvent and XStat with every field repeated: see traces.xplane.columns.

    message XEvents {
      repeated int64 metadata_id = 1;
      repeated int64 offset_ps = 2;
      repeated int64 duration_ps = 3;
      repeated bytes stats = 4;
      repeated int64 num_occurrences = 5;
    }

    message XStats {
      repeated int64 metadata_id = 1;
      repeated double double_value = 2;
      repeated uint64 uint64_value = 3;
      repeated int64 int64_value = 4;
      repeated bytes str_value = 5;
      repeated bytes bytes_value = 6;
      repeated uint64 ref_value = 7;
    }
    """,
)

XSpace = _CLASSES["XSpace"]
XPlane = _CLASSES["XPlane"]
XLine = _CLASSES["XLine"]
XEvent = _CLASSES["XEvent"]
XStat = _CLASSES["XStat"]
XEvents = _CLASSES["XEvents"]
XStats = _CLASSES["XStats"]
