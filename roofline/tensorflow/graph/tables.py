"""List which TensorFlow op is which kind of op: tables, no code to speak of.

Names are those of `base`: oneDNN's and grappler's variants (`_MklNativeFusedConv2D`) go by the op they stand for.
"""

from __future__ import annotations

from roofline.core.vocabulary import OpClass


def base(op: str) -> str:
    """The op that a rewritten one stands for: `_MklBatchMatMulV2` is BatchMatMulV2, `_FusedConv2D` is Conv2D."""
    if not op.startswith("_"):
        return op
    plain = op[1:]
    for prefix in ("MklNative", "Mkl"):
        plain = plain.removeprefix(prefix)
    unfused = plain.removeprefix("Fused")
    return unfused if unfused in CONTRACTIONS else plain


PRODUCTS = frozenset(
    (
        "MatMul SparseMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum SparseTensorDenseMatMul SparseMatrixMatMul"
    ).split()
)
CONVOLUTIONS = frozenset(
    (
        "Conv2D Conv3D DepthwiseConv2dNative Conv2DWithBias PadWithConv2D PadWithFusedConv2D "
        "Conv2DBackpropInput Conv2DBackpropFilter Conv3DBackpropInput Conv3DBackpropInputV2 Conv3DBackpropFilter "
        "Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter "
        "Conv2DBackpropFilterWithBias"
    ).split()
)
#: Recurrent layers and cells, and gradients of theirs that multiply.
RECURRENT = frozenset("BlockLSTM BlockLSTMV2 BlockLSTMGrad LSTMBlockCell GRUBlockCell GRUBlockCellGrad".split())
CONTRACTIONS = PRODUCTS | CONVOLUTIONS | RECURRENT

#: Ops whose result is their first input's buffer: nothing is computed, nothing moves.
FORWARDING = frozenset(
    (
        "Identity IdentityN Reshape ExpandDims Squeeze StopGradient PreventGradient EnsureShape Bitcast Snapshot "
        "PlaceholderWithDefault ReadVariableOp Enter Exit Switch Merge NextIteration LoopCond RefEnter RefExit "
        "RefSwitch RefMerge RefNextIteration RefIdentity SwitchN DebugIdentity DebugGradientIdentity"
    ).split()
)
#: Ops that move nothing either, with results of their own: constants, questions about shapes, handles, references.
VIEWS = FORWARDING | frozenset(
    (
        "Const NoOp Placeholder PlaceholderV2 VarHandleOp XlaOptimizationBarrier TensorListGetItem "
        "Arg Retval DeviceArg DeviceRetval HostConst EagerConst VarHandlesOp ControlTrigger Assert "
        "Shape ShapeN Size Rank BroadcastGradientArgs BroadcastArgs AssignVariableOp VarIsInitializedOp "
        "DestroyResourceOp IsVariableInitialized VariableShape Print PrintV2 "
        "TensorListReserve EmptyTensorList TensorListSetItem TensorListPushBack TensorListPopBack TensorListLength "
        "TensorListElementShape TensorListResize StackV2 StackPushV2 StackPopV2 StackCloseV2 "
        "IteratorGetNext IteratorV2 AnonymousIteratorV2 AnonymousIteratorV3 MakeIterator DeleteIterator "
        "OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone FakeParam "
        "SparseMatrixNNZ LookupTableSize LookupTableSizeV2 HashTableV2 "
        "StatelessRandomGetKeyCounter StatelessRandomGetAlg StatelessRandomGetKeyCounterAlg RngReadAndSkip "
        "XlaCompile XlaMerge MergeSummary ScalarSummary WriteScalarSummary"
    ).split()
)
#: Ops that run another function. What it does is counted at the nodes of that function.
CALLS: dict[str, tuple[str, ...]] = {
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
    "TPUPartitionedCall": ("f",),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
    "SymbolicGradient": ("f",),
    "RemoteCall": ("f",),
}

_PLAIN = {
    "Neg": "neg",
    "Abs": "abs",
    "ComplexAbs": "abs",
    "Square": "mul",
    "Reciprocal": "div",
    "Inv": "div",
    "Relu": "maximum",
    "Relu6": "clamp",
    "Add": "add",
    "AddV2": "add",
    "Sub": "sub",
    "Mul": "mul",
    "MulNoNan": "mul",
    "RealDiv": "div",
    "Div": "div",
    "DivNoNan": "div",
    "FloorDiv": "div",
    "TruncateDiv": "div",
    "Xdivy": "div",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "FloorMod": "remainder",
    "TruncateMod": "remainder",
    "Mod": "remainder",
    "BiasAdd": "add",
    "BiasAddV1": "add",
    "ClipByValue": "clamp",
    **{
        name: name.lower()
        for name in (
            "Exp Expm1 Log Log1p Erf Erfc Erfinv Tanh Sigmoid Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Asinh Acosh "
            "Atanh Pow Sqrt Rsqrt Lgamma Digamma"
        ).split()
    },
    "Ndtri": "ndtri",
    "Angle": "atan2",
    "NextAfter": "round",
    **{name: name.lower() for name in "Zeta Polygamma Igamma Igammac".split()},
    **{f"Bessel{kind.upper()}": f"bessel_{kind}" for kind in "i0 i1 j0 j1 y0 y1".split()},
    **{f"BesselI{order}e": f"bessel_i{order}e" for order in "01"},
    **{f"BesselK{order}": f"modified_bessel_k{order}" for order in "01"},
    **{f"BesselK{order}e": f"scaled_modified_bessel_k{order}" for order in "01"},
    **dict.fromkeys("Floor Ceil Round Rint Sign".split(), "round"),
    **dict.fromkeys(
        "Equal NotEqual Less LessEqual Greater GreaterEqual IsNan IsInf IsFinite ApproximateEqual".split(), "compare"
    ),
    **dict.fromkeys("LogicalAnd LogicalOr LogicalNot".split(), "logical"),
    **dict.fromkeys("BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift PopulationCount".split(), "bit"),
    **dict.fromkeys("Select SelectV2 ReluGrad Relu6Grad".split(), "select"),
    "Cast": "cast",
    **dict.fromkeys("Real Imag".split(), "copy"),
    "Conj": "neg",  # of what is imaginary
}
#: Primitives of costs/formulas.py applied once per output element, one after another.
ELEMENTWISE: dict[str, tuple[str, ...]] = {
    **{op: (kind,) for op, kind in _PLAIN.items()},
    "SquaredDifference": ("sub", "mul"),
    "Xlogy": ("log", "mul"),
    "Xlog1py": ("log1p", "mul"),
    "LeakyRelu": ("mul", "maximum"),
    "Elu": ("expm1", "select"),
    "Selu": ("expm1", "mul", "mul", "select"),
    "Softplus": ("exp", "log1p"),
    "Softsign": ("abs", "add", "div"),
    "Swish": ("sigmoid", "mul"),
    "FusedMish": ("exp", "log1p", "tanh", "mul"),
    # gradients, of the incoming dy and the result y, or the argument x
    "TanhGrad": ("mul", "sub", "mul"),  # dy * (1 - y * y)
    "SigmoidGrad": ("sub", "mul", "mul"),  # dy * y * (1 - y)
    "SqrtGrad": ("mul", "div"),  # dy * 0.5 / y
    "RsqrtGrad": ("mul", "mul", "mul", "mul"),  # dy * -0.5 * y * y * y
    "InvGrad": ("neg", "mul", "mul"),  # -dy * y * y
    "ReciprocalGrad": ("neg", "mul", "mul"),
    "EluGrad": ("add", "mul", "select"),  # dy * (y + 1) below 0
    "SeluGrad": ("add", "mul", "mul", "select"),
    "LeakyReluGrad": ("mul", "select"),
    "SoftplusGrad": ("sigmoid", "mul"),  # dy * sigmoid(x)
    "SoftsignGrad": ("abs", "add", "mul", "div"),  # dy / (1 + |x|)^2
}
#: What a fused contraction does to its result, per output element, by the names in its attribute fused_ops.
FUSED: dict[str, tuple[str, ...]] = {
    **{name: ELEMENTWISE[name] for name in "BiasAdd Add Relu Relu6 Elu LeakyRelu Tanh Sigmoid Mul".split()},
    # x/2 * (1 + erf(x / sqrt 2)), as ATen: 4 and one erf
    "GeluExact": ("mul", "erf", "add", "mul", "mul"),
    # x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x * x * x))), as ATen: 8 and one tanh
    "GeluApproximate": ("mul", "mul", "mul", "add", "mul", "tanh", "add", "mul", "mul"),
    **dict.fromkeys(("Swish", "_FusedSwish", "_MklSwish"), ELEMENTWISE["Swish"]),
    **dict.fromkeys(("Mish", "_MklFusedMish"), ELEMENTWISE["FusedMish"]),
    **dict.fromkeys(("HardSwish", "_FusedHardSwish"), ("add", "clamp", "mul", "div")),
    "BinaryAdd": ("add",),
    "Sum": ("add",),
    "FusedBatchNorm": ("sub", "mul", "mul", "add"),
}
#: Reductions; True: the result is divided by the number of elements too.
REDUCTIONS: dict[str, bool] = {
    **dict.fromkeys("Sum Prod Max Min BiasAddGrad".split(), False),
    "Mean": True,
}
#: Reductions whose body is a comparison or a logical operation.
WORKLESS_REDUCTIONS = frozenset("All Any ArgMax ArgMin".split())
SCANS = frozenset(("Cumsum", "Cumprod"))
RANDOM = frozenset(
    (
        "RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal Multinomial RandomGamma RandomPoissonV2 "
        "ParameterizedTruncatedNormal StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformInt "
        "StatelessRandomUniformIntV2 StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 "
        "StatelessRandomNormal StatelessRandomNormalV2 StatelessTruncatedNormal StatelessTruncatedNormalV2 "
        "StatelessMultinomial StatefulUniform StatefulUniformInt StatefulStandardNormalV2 StatefulTruncatedNormal "
        "RandomShuffle StatelessRandomBinomial StatefulRandomBinomial StatelessRandomPoisson StatelessRandomGammaV2 "
        "StatelessRandomGammaV3 StatelessParameterizedTruncatedNormal"
    ).split()
)
GATHERS = frozenset(("Gather", "GatherV2", "ResourceGather", "GatherNd", "ResourceGatherNd"))
#: Sums of rows picked by an index: (position of the data, of the index), the table written as a whole.
SEGMENTS = frozenset(
    (
        "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd SegmentSum SegmentMean "
        "SegmentMax SegmentMin SegmentProd SegmentSumV2 SegmentMaxV2 SegmentMinV2 SegmentProdV2 ScatterNd"
    ).split()
)
SPARSE_SEGMENTS = frozenset(
    (
        "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
        "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments"
    ).split()
)
SPARSE_SEGMENT_GRADS = frozenset(
    f"SparseSegment{kind}Grad{version}" for kind in ("Sum", "Mean", "SqrtN") for version in ("", "V2")
)
#: Scatters into a variable; True: combined with what is there.
RESOURCE_SCATTERS: dict[str, bool] = {
    **dict.fromkeys(
        "ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv ResourceScatterMax "
        "ResourceScatterMin ResourceScatterNdAdd ResourceScatterNdSub".split(),
        True,
    ),
    "ResourceScatterUpdate": False,
    "ResourceScatterNdUpdate": False,
}
TENSOR_SCATTERS: dict[str, bool] = {
    **dict.fromkeys("TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin".split(), True),
    "TensorScatterUpdate": False,
}
POOLS: dict[str, bool] = {"MaxPool": False, "MaxPoolV2": False, "MaxPool3D": False, "AvgPool": True, "AvgPool3D": True}
POOL_GRADS = frozenset(("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", "AvgPoolGrad", "AvgPool3DGrad"))
#: Gradients of resized images: FLOP per element of the incoming one, as aten's. Each is added to the pixel that it was
#: made of, or, times a weight, to four or sixteen of them.
RESIZE_GRADS: dict[str, float] = {
    "ResizeNearestNeighborGrad": 1.0,
    "ResizeBilinearGrad": 8.0,
    "ResizeBicubicGrad": 32.0,
}

#: Data is moved, made or picked, and nothing is computed.
MOVEMENT = frozenset(
    (
        "Transpose ConjugateTranspose Concat ConcatV2 Split SplitV Pack ParallelConcat Unpack Pad PadV2 MirrorPad "
        "MirrorPadGrad Slice StridedSlice StridedSliceGrad Tile BroadcastTo Fill ZerosLike OnesLike OneHot Range "
        "LinSpace Reverse ReverseV2 ReverseSequence Roll InvertPermutation MatrixDiag MatrixDiagV3 MatrixDiagPart "
        "MatrixDiagPartV3 MatrixSetDiag MatrixSetDiagV3 MatrixBandPart Diag DiagPart SpaceToBatchND BatchToSpaceND "
        "SpaceToDepth DepthToSpace DynamicStitch ParallelDynamicStitch DynamicPartition Copy DeepCopy Empty "
        "ConcatOffset TensorListStack TensorListConcatV2 TensorListGather TensorListFromTensor TensorListSplit "
        "CheckNumerics ExtractImagePatches Where ListDiff SparseToDense ResizeNearestNeighbor Complex "
        "StridedSliceAssign ResourceStridedSliceAssign DataFormatVecPermute DataFormatDimMap ExtractVolumePatches "
        "RaggedRange RaggedGather RaggedTensorToTensor RaggedTensorToSparse RaggedTensorToVariant "
        "RaggedTensorFromVariant SparseReorder SparseFillEmptyRows SparseFillEmptyRowsGrad SparseSlice SparseConcat "
        "SparseSplit SparseReshape SparseAddGrad SparseSliceGrad MatrixDiagV2 MatrixDiagPartV2 MatrixSetDiagV2 "
        "RaggedFillEmptyRows RaggedFillEmptyRowsGrad RaggedTensorToVariantGradient ExtractGlimpse ExtractGlimpseV2 "
        "SparseTensorToCSRSparseMatrix DenseToCSRSparseMatrix SparseMatrixZeros CSRSparseMatrixToDense "
        "CSRSparseMatrixToSparseTensor CSRSparseMatrixComponents SparseMatrixTranspose"
    ).split()
)
#: Sorting, sets and tables: comparisons only, which are no FLOP.
COMPARING = frozenset(
    (
        "CTCGreedyDecoder NthElement TopK TopKV2 InTopK InTopKV2 Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 "
        "SearchSorted LowerBound UpperBound Bucketize Bincount DenseBincount SparseBincount RaggedBincount RaggedCross "
        "SparseCross SparseCrossV2 SparseCrossHashed SetSize DenseToDenseSetOperation DenseToSparseSetOperation "
        "SparseToSparseSetOperation SparseMatrixOrderingAMD LookupTableFind LookupTableFindV2 "
        "ApproxTopK ComputeAccidentalHits UnicodeScript"
    ).split()
)
#: What takes as many rounds, or meets as many numbers, as these want: its tensors are read and written once.
ITERATIVE = frozenset(
    (
        "Svd SelfAdjointEig SelfAdjointEigV2 Eig MatrixSolveLs MatrixLogarithm MatrixSquareRoot MatrixExponential "
        "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
        "CombinedNonMaxSuppression NonMaxSuppressionWithOverlaps CTCBeamSearchDecoder SparseMatrixSparseMatMul "
        "SparseMatrixSparseCholesky"
    ).split()
)
TRANSFERS = frozenset(("Send", "Recv", "HostSend", "HostRecv", "CopyHost"))
COLLECTIVES = frozenset(
    (
        "CollectiveReduce CollectiveReduceV2 CollectiveReduceV3 CollectiveGather CollectiveGatherV2 "
        "CollectiveAllToAllV2 CollectiveReduceScatterV2 "
        "CollectiveBcastSendV2 CollectiveBcastRecvV2 NcclAllReduce NcclReduce NcclBroadcast"
    ).split()
)

#: The parameters of an update op that have a parameter's shape and are read and written, beside the gradient:
#: (how many leading inputs are written, FLOP per element, functions per element). Counted on the update rule:
#: AMSGrad takes a maximum beside Adam's 12; Keras' momentum is SGD's with the signs changed;
#: RMSProp  ms = rho ms + (1-rho) g g (4); mom = mu mom + lr g rsqrt(ms + eps) (5 + rsqrt); p = p - mom (1) = 10;
#: centred  mg = rho mg + (1-rho) g (3) and ms - mg mg (2) beside = 15;
#: Adadelta a = rho a + (1-rho) g g (4); u = g sqrt(d + eps) rsqrt(a + eps) (4 + sqrt + rsqrt); p = p - lr u (2);
#:          d = rho d + (1-rho) u u (4) = 14; AdaMax m (3); v = max(b2 v, |g|) (3); p = p - step m / (v + eps) (4) = 10.
UPDATES: dict[str, tuple[int, str | float, dict[str, float]]] = {
    "Adam": (3, "adam", {}),
    "AdamWithAmsgrad": (4, 13.0, {"sqrt": 1.0}),
    "AdaMax": (3, 10.0, {}),
    "GradientDescent": (1, "sgd", {}),
    "Momentum": (2, "sgd-momentum", {}),
    "KerasMomentum": (2, "sgd-momentum", {}),
    "Adagrad": (2, "adagrad", {}),
    "AdagradV2": (2, "adagrad", {}),
    "RMSProp": (3, 10.0, {"rsqrt": 1.0}),
    "CenteredRMSProp": (4, 15.0, {"rsqrt": 1.0}),
    "Adadelta": (3, 14.0, {"sqrt": 1.0, "rsqrt": 1.0}),
}
#: Where the gradient is among the inputs of an update op; the index of a sparse one follows it.
GRADIENT: dict[str, int] = {
    "Adam": 9,
    "AdamWithAmsgrad": 10,
    "AdaMax": 8,
    "GradientDescent": 2,
    "Momentum": 3,
    "KerasMomentum": 3,
    "Adagrad": 3,
    "AdagradV2": 4,
    "RMSProp": 7,
    "CenteredRMSProp": 8,
    "Adadelta": 6,
}

#: Inputs that say how, not what: shapes, axes, sizes, seeds. They are no traffic. Negative ones count from the end.
SETTINGS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(REDUCTIONS.keys() - {"BiasAddGrad"}, (1,)),
    **dict.fromkeys(WORKLESS_REDUCTIONS | SCANS | {"EuclideanNorm"}, (1,)),
    **dict.fromkeys(
        "Transpose ConjugateTranspose Tile BroadcastTo Pad MirrorPad MirrorPadGrad Reverse ReverseV2".split(), (1,)
    ),
    "PadV2": (1,),
    **dict.fromkeys(("PadWithConv2D", "PadWithFusedConv2D"), (-1,)),
    "Slice": (1, 2),
    "StridedSlice": (1, 2, 3),
    "StridedSliceGrad": (0, 1, 2, 3),
    "ResourceStridedSliceAssign": (1, 2, 3),
    "Concat": (0,),
    "ConcatV2": (-1,),
    "Split": (0,),
    "SplitV": (1, 2),
    "Fill": (0,),
    "OneHot": (1,),
    "Roll": (1, 2),
    **dict.fromkeys("Range LinSpace".split(), (0, 1, 2)),
    **dict.fromkeys(("Gather", "GatherV2"), (2,)),
    **dict.fromkeys((op for op in SEGMENTS if op.startswith("Unsorted")), (2,)),
    **dict.fromkeys((op for op in SEGMENTS if op.endswith("V2")), (2,)),
    "SparseTensorDenseMatMul": (2,),
    **{f"{inverse}RFFT{dimensions}": (1,) for inverse in ("", "I") for dimensions in ("", "2D", "3D")},
    **{f"{inverse}{real}FFTND": (1, 2) for inverse in ("", "I") for real in ("", "R")},
    **dict.fromkeys("ResizeBicubic ResizeArea".split(), (1,)),
    "ScaleAndTranslate": (1, 2, 3),
    "ScaleAndTranslateGrad": (1, 2, 3),  # of the image only the size
    **dict.fromkeys(("CropAndResize", "CropAndResizeGradImage"), (3,)),
    **dict.fromkeys(("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"), (2, 3)),
    **dict.fromkeys("SparseReduceSum SparseReduceMax SparseReduceSumSparse SparseReduceMaxSparse".split(), (2, 3)),
    "SparseAdd": (2, 5, 6),
    **dict.fromkeys(("SparseSparseMaximum", "SparseSparseMinimum"), (2, 5)),
    "SparseSliceGrad": (2,),
    "SparseReorder": (2,),
    "ScatterNd": (2,),
    **dict.fromkeys((op for op in SPARSE_SEGMENTS if op.endswith("NumSegments")), (3,)),
    **dict.fromkeys(SPARSE_SEGMENT_GRADS, (3,)),
    **dict.fromkeys(RANDOM - {"RandomShuffle", "Multinomial", "StatelessMultinomial"}, tuple(range(8))),
    **dict.fromkeys(("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "Conv3DBackpropInputV2"), (0,)),
    **dict.fromkeys(("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", "Conv3DBackpropFilterV2"), (1,)),
    "Conv2DBackpropFilterWithBias": (1,),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2"), (0,)),
    # Only the shapes of these are used.
    "BlockLSTMGrad": (0, 8),
    "LSTMBlockCellGrad": (0, 2, 3, 7),
    "GRUBlockCellGrad": (0, 4, 5),
    "ZerosLike": (0,),
    "OnesLike": (0,),
    "AvgPoolGrad": (0,),
    "FractionalAvgPoolGrad": (0,),
    "AvgPool3DGrad": (0,),
    "MaxPoolGrad": (1,),  # where the maximum was follows from the input alone
    "MaxPoolGradV2": (1, 3, 4),
    "MaxPool3DGrad": (1,),
    "MaxPoolV2": (1, 2),
    "Cumsum": (1,),
    "Cumprod": (1,),
    "TopKV2": (1,),
    **dict.fromkeys("SpaceToBatchND BatchToSpaceND".split(), (1, 2)),
    **dict.fromkeys(("ResizeNearestNeighbor", "ResizeBilinear"), (1,)),
    **dict.fromkeys(RESIZE_GRADS, (1,)),  # of the image only the size
    **dict.fromkeys(("MatrixDiagV3", "MatrixDiagPartV3"), (1, 2, 3, 4)),
    "MatrixBandPart": (1, 2),
    **dict.fromkeys("TensorListStack TensorListGather TensorListConcatV2".split(), (0, 1, 2)),
    "TensorListFromTensor": (1,),
}

#: Inputs of recurrent layers and cells that nobody reads where they have no peepholes.
PEEPHOLES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad"), (5, 6, 7)),
    "LSTMBlockCell": (4, 5, 6),
    "LSTMBlockCellGrad": (4, 5, 6, 9),
}

_CLASSES: dict[OpClass, frozenset[str] | set[str]] = {
    "contraction": CONTRACTIONS,
    "reduction": {
        *REDUCTIONS,
        *WORKLESS_REDUCTIONS,
        *SCANS,
        *POOLS,
        *POOL_GRADS,
        *(f"Fractional{kind}Pool{end}" for kind in ("Avg", "Max") for end in ("", "Grad")),
        "ResizeNearestNeighborGrad",
        "SparseReduceSum",
        "SparseReduceMax",
        "SparseReduceSumSparse",
        "SparseReduceMaxSparse",
        "L2Loss",
        "EuclideanNorm",
    },
    "normalisation": set(
        (
            "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormEx FusedBatchNormGrad FusedBatchNormGradV2 "
            "FusedBatchNormGradV3 FusedBatchNormGradEx LayerNorm LRN LRNGrad"
        ).split()
    ),
    "softmax": set(
        (
            "Softmax LogSoftmax SparseSoftmax SparseMatrixSoftmax SparseMatrixSoftmaxGrad "
            "SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits"
        ).split()
    ),
    "embedding": {*GATHERS, *SEGMENTS, *SPARSE_SEGMENTS, *SPARSE_SEGMENT_GRADS, *RESOURCE_SCATTERS, *TENSOR_SCATTERS},
    "random": RANDOM | {"UniformCandidateSampler", "LogUniformCandidateSampler"},
    "movement": MOVEMENT | {"Cast", "Real", "Imag", "QuantizedConcat"},
    "other": COMPARING,
    "transfer": TRANSFERS,
    "communication": COLLECTIVES,
}
CLASS_OF: dict[str, OpClass] = {
    **dict.fromkeys(ELEMENTWISE, "pointwise"),
    **dict.fromkeys(("AddN", "AccumulateNV2", "UnaryOpsComposition", "AssignAddVariableOp"), "pointwise"),
    **dict.fromkeys(
        (
            "SparseDenseCwiseMul SparseDenseCwiseDiv SparseDenseCwiseAdd SparseTensorDenseAdd SparseAdd "
            "SparseSparseMaximum SparseSparseMinimum SparseMatrixMul SparseMatrixAdd AdjustContrastv2 Cross "
            "QuantizeV2 Dequantize QuantizeAndDequantizeV4 FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars "
            "FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVarsGradient "
            "FakeQuantWithMinMaxVarsPerChannelGradient LSTMBlockCellGrad RGBToHSV HSVToRGB AdjustHue AdjustSaturation"
        ).split(),
        "pointwise",
    ),
    **dict.fromkeys(("AssignSubVariableOp",), "pointwise"),
    **{op: op_class for op_class, ops in _CLASSES.items() for op in ops},
}


def update_rule(op: str) -> tuple[str, bool] | None:
    """("Adam", whether it is sparse) of `ResourceSparseApplyAdam`; None for what is no update of a parameter."""
    for prefix, sparse in (("ResourceSparseApply", True), ("ResourceApply", False)):
        rule = op.removeprefix(prefix)
        if rule != op:
            return rule, sparse
    return None
