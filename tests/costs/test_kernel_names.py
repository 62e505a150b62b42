"""What names of kernels tell; all of them are from real traces."""

from __future__ import annotations

import pytest

from roofline.costs import kernel_names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "contraction"),
        ("nvjet_tst_128x64_64x8_1x2_h_bz_coopB_TNT", "contraction"),
        ("volta_sgemm_128x32_nt", "contraction"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>", "contraction"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1", "contraction"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "contraction"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x", "contraction"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", "contraction"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>", "attention"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128", "attention"),
        ("kernel_unified_attention_3d", "attention"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", "normalisation"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipeline", "normalisation"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false>", "softmax"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>", "pointwise"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>", "movement"),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", "optimizer"),
        ("void split_embedding_codegen_forward_unweighted_kernel<float, float, long>", "embedding"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>", "communication"),
        ("Memcpy HtoD (Pinned -> Device)", "transfer"),
        ("Memcpy DtoH (Device -> Pageable)", "transfer"),
        ("Memcpy DtoD (Device -> Device)", "movement"),
        ("Memset (Device)", "movement"),
        ("triton_poi_fused__to_copy_1", "movement"),
        ("triton_red_fused_add_1", "reduction"),
        ("_combined_routing_compute", "other"),
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
            "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>>",
            "pointwise",
        ),
        ("void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>", "pointwise"),
        ("void at::native::(anonymous namespace)::roll_cuda_kernel<float>", "movement"),
        ("void at::native::elementwise_kernel<at::native::gpu_kernel_impl<direct_copy_kernel_cuda>>", "movement"),
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
            "at::native::templates::cuda::normal_and_transform<float>>",
            "random",
        ),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::Mma>>>", "attention"),
        ("void cutlass::device_kernel<flash::enable_sm80_to_sm89<flash::FlashAttnBwdSm80<flash::Mma>>>", "attention"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>", "normalisation"),
        ("void cudnn::bn_bw_1C11_kernel_new<__half, float, float2, 512, true, 1>", "normalisation"),
        ("fused_moe_kernel", "contraction"),
        ("__amd_rocclr_fillBufferAligned", "movement"),
        ("__amd_rocclr_copyBuffer", "movement"),
        ("CopyHostToDevice", "transfer"),
        ("CopyDeviceToHost", "transfer"),
        ("CopyDeviceToDevice", "movement"),
        ("triton_poi_fused_conversion_0", "pointwise"),
        ("triton_poi_fused_convolution_relu_3", "pointwise"),
        ("triton_poi_fused_addmm_gelu_1", "pointwise"),
        ("triton_tem_fused_addmm_1", "contraction"),
        ("void conversion_kernel<float>", "other"),
        ("void conv2d_grouped_direct_kernel<float>", "contraction"),
        ("void multimem_all_reduce_kernel<c10::BFloat16>", "communication"),
        ("sm80_gemm", "contraction"),
        ("", "other"),
    ],
)
def test_class(name, expected):
    assert kernel_names.classify(name) == expected


def test_names_that_differ_in_their_numbers_are_told_once() -> None:
    names = [f"triton_poi_fused_gelu_{number}<{number * 7}>" for number in range(10, 1000)]
    before = kernel_names._classify.cache_info().misses
    assert {kernel_names.classify(name) for name in names} == {"pointwise"}
    # Of one digit, or of more: "_10<70>" is one kind; numbers of one digit stand as they are, as in "h2d".
    assert kernel_names._classify.cache_info().misses <= before + 1


#: Learning rate, betas, weight decay and epsilon of a fused Adam are doubles, whatever it works on.
ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, "
    "at::native::(anonymous namespace)::FusedAdamMathFunctor<{}, 4, (at::native::ADAM_MODE)1, false>, float const*, "
    "double, double, double, double, double, bool, float const*, float const*, (at::native::ADAM_MODE)1>"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4>", "c10::Half"),
        ("void CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 3>", "float"),
        ("void CatArrayBatchedCopy<OpaqueType<8u>, unsigned int>", "long int"),
        ("void CatArrayBatchedCopy<OpaqueType<16u>, unsigned int>", None),
        ("void CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, CatArrInputTensorMetadata<float>)", "float"),
        ("void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOp<c10::BFloat16, 2>>", "c10::BFloat16"),
        ("void f<c10::Half>", "c10::Half"),
        ("void f<double, unsigned int>", "double"),
        ("void f<int, 4>", "int"),
        ("void f<unsigned int>", None),
        ("triton_poi_fused_cat_0", None),
        (ADAM.format("float"), "float"),
        (ADAM.format("c10::BFloat16"), "c10::BFloat16"),
        (ADAM.format("double"), "double"),
        ("void multi_tensor_apply_kernel<List<4>, FusedSgdMathFunctor<c10::Half, 2>, double>", "c10::Half"),
        ("void multi_tensor_apply_kernel<List<2>, CopyFunctor<c10::complex<float>, 2>, float>", "c10::complex<float>"),
        ("void multi_tensor_apply_kernel<List<2>, SomeFunctor<4>, float, double>", "float"),
        ("Memcpy DtoD (Device -> Device)", None),
    ],
)
def test_element_type(name, expected):
    assert kernel_names.element(name, short="c10::Half") == expected


def test_long_and_odd_names_take_no_time():
    assert kernel_names.classify("<" * 10**6) == "other"
    assert kernel_names.element("OpaqueType<" + "9" * 10**6) is None
