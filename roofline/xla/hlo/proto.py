"""The messages of XLA's HLO, as far as counting work, bytes and buffers needs them.

Field names and numbers are those of xla/service/hlo.proto and xla/xla_data.proto (openxla/xla), where each is
described; a test holds them against the copies that TensorFlow installs. Enums are plain ints, and only the types of
elements need their names. Strings are UTF-8 or the message does not decode, in XLA as here.
"""

from __future__ import annotations

from roofline.protobuf import messages

_CLASSES = messages(
    "roofline.hlo",
    """
    message HloProto {
      HloModuleProto hlo_module = 1;
      BufferAssignmentProto buffer_assignment = 3;
    }

    message HloModuleProto {
      string name = 1;
      string entry_computation_name = 2;
      repeated HloComputationProto computations = 3;
      ProgramShapeProto host_program_shape = 4;
      int64 id = 5;
      int64 entry_computation_id = 6;
      HloScheduleProto schedule = 7;
      HloInputOutputAliasProto input_output_alias = 8;
      bool is_dynamic = 11;
      DeviceAssignmentProto device_assignment = 15;
      StackFrameIndexProto stack_frame_index = 17;
      HloBufferDonorProto buffer_donor = 18;
    }

    message DeviceAssignmentProto {
      int32 replica_count = 1;
      int32 computation_count = 2;
    }

    message HloComputationProto {
      string name = 1;
      repeated HloInstructionProto instructions = 2;
      ProgramShapeProto program_shape = 4;
      int64 id = 5;
      int64 root_id = 6;
      bool is_fusion_computation = 7;
      string execution_thread = 8;
    }

    message HloInstructionProto {
      message SliceDimensions {
        int64 start = 1;
        int64 limit = 2;
        int64 stride = 3;
      }
      string name = 1;
      string opcode = 2;
      ShapeProto shape = 3;
      OpMetadata metadata = 7;
      LiteralProto literal = 8;
      int64 parameter_number = 9;
      string fusion_kind = 11;
      int64 tuple_index = 13;
      repeated int64 dimensions = 14;
      Window window = 15;
      ConvolutionDimensionNumbers convolution_dimension_numbers = 16;
      repeated SliceDimensions slice_dimensions = 17;
      int32 exponent_bits = 18;
      int32 mantissa_bits = 19;
      repeated int64 dynamic_slice_sizes = 20;
      PaddingConfig padding_config = 21;
      int32 distribution = 23;
      float epsilon = 24;
      int64 feature_index = 25;
      int64 channel_id = 26;
      string custom_call_target = 28;
      ShapeProto outfeed_shape = 29;
      DotDimensionNumbers dot_dimension_numbers = 30;
      int32 fft_type = 31;
      repeated int64 fft_length = 32;
      GatherDimensionNumbers gather_dimension_numbers = 33;
      repeated int64 gather_slice_sizes = 34;
      int64 id = 35;
      repeated int64 operand_ids = 36;
      repeated int64 control_predecessor_ids = 37;
      repeated int64 called_computation_ids = 38;
      bytes backend_config = 43;
      int64 all_reduce_id = 45;
      bool is_host_transfer = 47;
      ScatterDimensionNumbers scatter_dimension_numbers = 48;
      repeated ReplicaGroup replica_groups = 49;
      int64 feature_group_count = 50;
      PrecisionConfig precision_config = 51;
      repeated SourceTarget source_target_pairs = 52;
      repeated ShapeProto operand_shapes_with_layout = 57;
      int64 batch_group_count = 58;
      TriangularSolveOptions triangular_solve_options = 59;
      bool is_stable = 60;
      CholeskyOptions cholesky_options = 62;
      string comparison_direction = 63;
      bool custom_call_has_side_effect = 65;
      int64 delta = 66;
      bool indices_are_sorted = 67;
      FrontendAttributes frontend_attributes = 68;
      bool unique_indices = 69;
      int32 rng_algorithm = 70;
      bool use_global_device_ids = 71;
      string comparison_type = 72;
      repeated OutputOperandAliasing output_operand_aliasing = 74;
      int32 padding_type = 75;
      int32 custom_call_api_version = 77;
      string async_execution_thread = 79;
      int64 k = 81;
      bool largest = 85;
      oneof replica_group_list {
        CollectiveDeviceListProto collective_device_list = 87;
        IotaReplicaGroupListProto iota_collective_device_list = 92;
      }
      RaggedDotDimensionNumbers ragged_dot_dimension_numbers = 90;
      bool is_reverse = 94;
      int64 num_carries = 95;
      int32 conv_kind = 97;
    }

    message FrontendAttributes {
      message MapEntry {
        string key = 1;
        string value = 2;
      }
      repeated MapEntry map = 1;
    }

    message OpMetadata {
      string op_type = 1;
      string op_name = 2;
      string source_file = 3;
      int32 source_line = 4;
      string deduplicated_name = 12;
      int32 stack_frame_id = 15;
    }

    message StackFrameIndexProto {
      message FileLocation {
        int32 file_name_id = 1;
        int32 function_name_id = 2;
        int32 line = 3;
        int32 column = 4;
      }
      message StackFrame {
        int32 file_location_id = 1;
        int32 parent_frame_id = 2;
      }
      repeated string file_names = 1;
      repeated string function_names = 2;
      repeated FileLocation file_locations = 3;
      repeated StackFrame stack_frames = 4;
    }

    // Order of execution: a map from the id of a computation to its sequence.
    message HloScheduleProto {
      message InstructionSequence {
        repeated int64 instruction_ids = 1;
      }
      message SequencesEntry {
        int64 key = 1;
        InstructionSequence value = 2;
      }
      repeated SequencesEntry sequences = 1;
    }

    // Shapes and values

    message ShapeProto {
      int32 element_type = 2;
      repeated int64 dimensions = 3;
      repeated ShapeProto tuple_shapes = 4;
      LayoutProto layout = 5;
      repeated bool is_dynamic_dimension = 6;
    }

    message LayoutProto {
      repeated int64 minor_to_major = 1;
      repeated TileProto tiles = 6;
      int64 element_size_in_bits = 7;
      int64 memory_space = 8;
    }

    message TileProto {
      repeated int64 dimensions = 1;
    }

    message ProgramShapeProto {
      repeated ShapeProto parameters = 1;
      ShapeProto result = 2;
      repeated string parameter_names = 3;
    }

    message LiteralProto {
      ShapeProto shape = 1;
      repeated bool preds = 2;
      bytes u8s = 3;
      repeated int32 s32s = 4;
      repeated int64 s64s = 5;
      repeated uint32 u32s = 6;
      repeated uint64 u64s = 7;
      repeated float f32s = 8;
      repeated double f64s = 9;
      repeated LiteralProto tuple_literals = 10;
      bytes f16s = 11;
      bytes bf16s = 13;
      bytes s8s = 15;
      bytes u16s = 16;
      bytes s16s = 17;
    }

    // What an instruction does along which dimension

    message DotDimensionNumbers {
      repeated int64 lhs_contracting_dimensions = 1;
      repeated int64 rhs_contracting_dimensions = 2;
      repeated int64 lhs_batch_dimensions = 3;
      repeated int64 rhs_batch_dimensions = 4;
    }

    message RaggedDotDimensionNumbers {
      DotDimensionNumbers dot_dimension_numbers = 1;
      repeated int64 lhs_ragged_dimensions = 2;
      repeated int64 rhs_group_dimensions = 3;
    }

    message ConvolutionDimensionNumbers {
      int64 kernel_input_feature_dimension = 3;
      int64 kernel_output_feature_dimension = 4;
      repeated int64 kernel_spatial_dimensions = 6;
      int64 input_batch_dimension = 7;
      int64 input_feature_dimension = 8;
      int64 output_batch_dimension = 9;
      int64 output_feature_dimension = 10;
      repeated int64 input_spatial_dimensions = 11;
      repeated int64 output_spatial_dimensions = 12;
    }

    message Window {
      repeated WindowDimension dimensions = 1;
    }

    message WindowDimension {
      int64 size = 1;
      int64 stride = 2;
      int64 padding_low = 3;
      int64 padding_high = 4;
      int64 window_dilation = 5;
      int64 base_dilation = 6;
      bool window_reversal = 7;
    }

    message PaddingConfig {
      message PaddingConfigDimension {
        int64 edge_padding_low = 1;
        int64 edge_padding_high = 2;
        int64 interior_padding = 3;
      }
      repeated PaddingConfigDimension dimensions = 1;
    }

    message GatherDimensionNumbers {
      repeated int64 offset_dims = 1;
      repeated int64 collapsed_slice_dims = 2;
      repeated int64 start_index_map = 3;
      int64 index_vector_dim = 4;
      repeated int64 operand_batching_dims = 5;
      repeated int64 start_indices_batching_dims = 6;
    }

    message ScatterDimensionNumbers {
      repeated int64 update_window_dims = 1;
      repeated int64 inserted_window_dims = 2;
      repeated int64 scatter_dims_to_operand_dims = 3;
      int64 index_vector_dim = 4;
      repeated int64 input_batching_dims = 5;
      repeated int64 scatter_indices_batching_dims = 6;
    }

    message TriangularSolveOptions {
      bool left_side = 1;
      bool lower = 2;
      bool unit_diagonal = 3;
      int32 transpose_a = 4;
    }

    message CholeskyOptions {
      bool lower = 1;
    }

    message PrecisionConfig {
      repeated int32 operand_precision = 1;
      int32 algorithm = 2;
    }

    // Devices that take part in a collective

    message ReplicaGroup {
      repeated int64 replica_ids = 1;
    }

    message IotaReplicaGroupListProto {
      int64 num_replica_groups = 1;
      int64 num_devices_per_group = 2;
      repeated int64 iota_reshape_dims = 3;
      repeated int32 iota_transpose_perm = 4;
    }

    message CollectiveDeviceListProto {
      repeated ReplicaGroup replica_groups = 1;
      IotaReplicaGroupListProto iota_replica_group_list = 2;
    }

    message SourceTarget {
      int64 source = 1;
      int64 target = 2;
    }

    // Buffers

    message OutputOperandAliasing {
      repeated int64 output_shape_index = 1;
      int64 operand_index = 2;
      repeated int64 operand_shape_index = 3;
    }

    message HloInputOutputAliasProto {
      message AliasEntryProto {
        repeated int64 output_shape_index = 1;
        int64 parameter_number = 2;
        repeated int64 parameter_shape_index = 3;
        int32 kind = 4;
      }
      repeated AliasEntryProto entries = 1;
    }

    message HloBufferDonorProto {
      message BufferDonorEntryProto {
        int64 parameter_number = 1;
        repeated int64 parameter_shape_index = 2;
      }
      repeated BufferDonorEntryProto entries = 1;
    }

    message BufferAssignmentProto {
      message BufferAlias {
        int64 source_buffer_id = 1;
        LogicalBufferProto.Location location = 2;
      }
      repeated LogicalBufferProto logical_buffers = 1;
      repeated BufferAlias buffer_aliases = 2;
      repeated BufferAllocationProto buffer_allocations = 3;
    }

    message LogicalBufferProto {
      message Location {
        string instruction_name = 2;
        repeated int64 shape_index = 3;
        int64 instruction_id = 4;
      }
      int64 id = 1;
      int64 size = 2;
      Location defined_at = 3;
      int64 color = 4;
    }

    message BufferAllocationProto {
      message Assigned {
        int64 logical_buffer_id = 1;
        int64 offset = 2;
        int64 size = 3;
      }
      int64 index = 1;
      int64 size = 2;
      bool is_thread_local = 3;
      bool is_entry_computation_parameter = 5;
      int64 parameter_number = 6;
      bool maybe_live_out = 7;
      int64 color = 8;
      repeated Assigned assigned = 9;
      repeated int64 parameter_shape_index = 10;
      bool is_tuple = 11;
      bool is_constant = 12;
      bool is_parameter_aliased_with_output = 13;
    }
    """,
)

HloProto = _CLASSES["HloProto"]
HloModuleProto = _CLASSES["HloModuleProto"]

PRIMITIVE_TYPES = dict(
    enumerate(
        "PRIMITIVE_TYPE_INVALID PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 TUPLE OPAQUE_TYPE C64 BF16 TOKEN C128 "
        "F8E5M2 F8E4M3FN S4 U4 F8E4M3B11FNUZ F8E5M2FNUZ F8E4M3FNUZ S2 U2 F8E4M3 F8E3M4 S1 U1 F4E2M1FN F8E8M0FNU "
        "BUFFER".split()
    )
)
"""ShapeProto.element_type -> its name."""
