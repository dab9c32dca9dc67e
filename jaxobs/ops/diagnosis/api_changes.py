"""What the API of JAX, and of libraries beside it, has in some releases and not in others, by their changelogs.

Whoever misses one of these names runs code that was written for another release; other names are misspelt.
"""

from __future__ import annotations

import re

_NAMES = {
    "flax": "nn optim nnx",
    "flax.jax_utils": "pad_shard_unpad",
    "jax": """
        abstract_arrays ad_util allow_f16_reductions api Array array_garbage_collection_guard array_ref ArrayRef
        auto_pcast clear_backends clear_caches cloud_tpu_init collect_profile Compiled CompilerEffortLevel
        copy_to_host_async custom_ivjp custom_remat custom_transforms custom_transpose debug debug_key_reuse
        default_device defjvp defjvp_all defvjp defvjp_all Device ds effects_barrier empty_ref
        enable_custom_vjp_by_custom_transpose enable_key_reuse_checks enable_x64 explain_cache_misses export
        extend ffi free_ref freeze fwd_and_bwd get_abstract_mesh get_mesh Inline invertible
        jaxlib_extension_version jaxpr_util legacy_prng_key linear_util live_arrays Lowered
        make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
        make_mesh make_user_context mask memory monitoring named_scope NamedSharding new_ref no_execution
        no_tracing numpy_dtype_promotion print_environment_info prng process_indices pure_callback Ref ref
        remove_size_one_mesh_axis_from_type reshard set_mesh shapecheck ShapedArray Shard shard_map sharding
        smap soft_pmap softmax_custom_jvp source_info_util spmd_mode stages thread_guard threefry_partitionable
        traceback_util transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host
        transfer_guard_host_to_device tree tree_flatten tree_leaves tree_map tree_multimap tree_structure
        tree_transpose tree_unflatten treedef_is_leaf typeof use_abstract_mesh util xla xla_computation
    """,
    "jax.core": """
        abstract_token abstract_unit AbstractBInt AbstractToken AbstractUnit apply_todos as_hashable_function
        as_named_shape aval_eltype aval_has_custom_eltype aval_mapping_handlers aval_method aval_property
        AvalMapHandlerPair axis_frame axis_substitution_rules AxisEnvFrame AxisName AxisPrimitive AxisSize
        AxisSizeForJaxprTracingSpec AxisSizeForJaxprType AxisSizeForTracing AxisSubst bint Bot bot call
        call_bind call_bind_with_continuation call_impl call_p CallPrimitive canonicalize_dim
        canonicalize_named_shape canonicalize_shape check_call check_eqn check_jaxpr check_leaks check_map
        check_type check_valid_jaxtype checking_leaks closed_call_p ClosedCallPrimitive ClosedJaxpr
        concrete_aval concrete_or_error ConcreteArray concretization_function_error ConcretizationTypeError
        convert_element_type_p cur_sublevel custom_eltypes custom_typechecks CustomPpEqnRule DConcreteArray
        debug_state DebugInfo DebugState dedup_referents definitely_equal diff_dim diff_shape dilate_dim
        dilate_shape dimension_as_value DimensionHandler DimSize divide_shape_sizes do_subst_axis_names_jaxpr
        DropVar dropvar DShapedArray DuplicateAxisNameError Effect Effects eltype escaped_tracer_error
        eval_jaxpr_eqn EvalTrace extend_axis_env extend_axis_env_nd extra_jit_context extract_call_jaxpr
        find_top_trace full_lower gensym get_aval get_opaque_trace_state get_referent get_type greater_equal_dim
        greater_equal_shape has_custom_eltype has_opaque_dtype HashableFunction HashableWrapper
        InconclusiveDimensionOperation initial_to_final_param_rules InputType is_concrete is_constant_dim
        is_constant_shape is_custom_eltype is_dim is_empty_shape is_opaque_dtype is_special_dim_size Jaxpr
        jaxpr_as_fun jaxpr_uses_outfeed JaxprDebugInfo JaxprEqn JaxprPpContext JaxprPpSettings jaxprs_in_params
        JaxprTypeError join_effects join_named_shapes lattice_join leaked_tracer_error literalable_types
        MainTrace map_bind map_bind_with_continuation mapped_aval MapPrimitive maybe_find_leaked_tracers
        maybe_new_sublevel named_call_p NamedShape NameGatheringSubst new_base_main new_jaxpr_eqn new_main
        new_sublevel no_axis_name no_effects non_negative_dim nonempty_axis_env_DO_NOT_USE opaque_dtypes
        OpaqueDType OpaqueTraceState ordered_effects outfeed_primitives OutputType PaddedArray PrettyPrint
        primal_dtype_to_tangent_dtype Primitive primitive_uses_outfeed process_env_traces
        process_env_traces_call process_env_traces_map raise_as_much_as_possible raise_concretization_error
        raise_to_shaped raise_to_shaped_mappings ref reset_trace_state same_referent same_shape_sizes
        set_current_trace Shape skip_checks skipping_checks stash_axis_env str_eqn_compact stride_dim
        stride_shape subjaxprs Sublevel subst_axis_names subst_axis_names_eqn subst_axis_names_jaxpr
        subst_axis_names_var substitute_vars_in_output_ty sum_dim sum_shapes symbolic_equal_dim
        symbolic_equal_one_of_dim symbolic_equal_shape take_current_trace thread_local_state ThreadLocalState
        Token trace_ctx trace_state_clean Tracer TRACER_LEAK_DEBUGGER_WARNING TracerArrayConversionError
        TracerIntegerConversionError TraceStack TraceState TraceTag traverse_jaxpr_params tuple_delete
        tuple_insert typecheck typecheck_assert typecompat typematch UnexpectedTracerError Unit unit UnitVar
        unitvar unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
        unsafe_get_axis_names_DO_NOT_USE unsafe_get_current_trace_DO_NOT_USE unsafe_map unsafe_zip UnshapedArray
        used_axis_names used_axis_names_jaxpr valid_jaxtype Var zeros_like_float0
    """,
    "jax.custom_derivatives": """
        custom_jvp_call_jaxpr_p custom_vjp_call_jaxpr_p custom_vjp_primal_tree_values CustomJVPCallPrimitive
        CustomVJPCallPrimitive CustomVJPPrimal linear_call_p raise_to_shaped remat_opt_p Residuals
        stop_gradient_p SymbolicZero tree_flatten tree_map tree_multimap tree_unflatten treedef_is_leaf Zero
        zero_from_primal zeros_like_aval
    """,
    "jax.debug": """
        breakpoint callback DebugEffect inspect_array_sharding log OrderedDebugEffect print
        visualize_array_sharding visualize_sharding
    """,
    "jax.distributed": "is_initialized shutdown",
    "jax.dlpack": "is_supported_dtype SUPPORTED_DTYPES to_dlpack",
    "jax.dtypes": """
        bool_ can_cast coerce_to_array complex_ dtype dtype_real extended float_ int_ is_python_scalar
        is_weakly_typed issubsctype itemsize_bits prng_key promote_types python_scalar_dtypes TypePromotionError
    """,
    "jax.errors": """
        InconclusiveDimensionOperation JaxprTypeError JaxRuntimeError KeyReuseError SimplifiedTraceback
        TracerBoolConversionError
    """,
    "jax.experimental": """
        _private_mm ann array_api array_serialization attrs buffer_callback callback colocated_python compute_on
        control_deps cur_qdd custom_dce custom_partitioning disable_x64 doubledouble EArray enable_x64 export
        fused gda_serialization general_map global_device_array hijax host_callback io_callback key_reuse layout
        loops maps multihost_utils mutable_array MutableArray optimizers optix overlap PartitionSpec
        primal_tangent_dtype profiler rnn saved_input_vjp scheduling_groups serialize_executable shard
        shard_alike shard_map sharded_jit sharding si_vjp sparse_ops stax topologies transfer vectorize
        with_sharding_constraint x64_context xla_metadata
    """,
    "jax.experimental.layout": """
        AUTO DeviceLocalLayout Format Layout SpecifiedLayout with_dll_constraint with_layout_constraint
    """,
    "jax.experimental.pallas": """
        align_to ANY atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor
        BlockDim Blocked BlockSpec BoundedSlice broadcast_to Buffered cdiv CompilerParams core_map CostEstimate
        debug_check debug_checks_enabled debug_print delay DeviceIdType dot ds dslice Element empty empty_like
        empty_ref_like enable_debug_checks enable_poison_buffers enable_runtime_assert estimate_cost fuser
        get_global gpu GridSpec HOST IndexingMode Indirect kernel load loop lower_as_mlir max_contiguous
        MemoryRef MemorySpace mosaic_gpu multiple_of next_power_of_2 no_block_spec num_programs ops pallas_call
        pallas_call_p pallas_export_experimental program_id reciprocal RevisitMode run_scoped run_state
        runtime_assert_enabled select_ref semaphore semaphore_read semaphore_signal semaphore_wait Slice
        Squeezed squeezed store strides_from_shape swap tpu tpu_sc triton Unblocked unblocked when with_scoped
    """,
    "jax.experimental.pallas.tpu": """
        ANY ARBITRARY assume async_copy async_remote_copy bitcast BufferedRef BufferedRefBase BufferType
        ChipVersion CMEM CompilerParams core_barrier CORE_PARALLEL CoreMemorySpace CoreType CostEstimate
        create_tensorcore_mesh define_model delay device_id DeviceIdType dma_semaphore einshape emit_pipeline
        emit_pipeline_with_allocations enable_runtime_assert encode_kernel_regeneration_metadata
        extract_kernel_regeneration_metadata force_tpu_interpret_mode GeneralMemorySpace get_barrier_semaphore
        get_memory_space get_pipeline_schedule get_tpu_info get_tpu_info_for_chip GridDimensionSemantics HBM
        HOST InterpretParams is_accelerated is_tpu_device KernelType load LoweringException make_async_copy
        make_async_remote_copy make_pipeline_allocations ManualPrefetchArgs matmul_acc_lhs matmul_lhs_fifo
        matmul_pop matmul_pop_fifo matmul_push_rhs MemorySpace pack_elementwise PARALLEL PipelineCallbackArgs
        PipelinePrefetchArgs PipelineStep PrefetchScalarGridSpec pretend prng_random_bits prng_seed repeat
        reset_tpu_interpret_mode_state roll run_on_first_core run_scoped runtime_assert_enabled sample_block
        SEMAPHORE semaphore semaphore_read semaphore_signal semaphore_wait SemaphoreType set_tpu_interpret_mode
        SideEffectType skip SMEM stateful_bernoulli stateful_bits stateful_normal stateful_uniform
        stochastic_round store SUBCORE_PARALLEL sync_copy TensorCoreMesh Tiling to_pallas_key touch
        TPUCompilerParams TpuInfo TPUMemorySpace trace_value unpack_elementwise VMEM VMEM_SHARED
        with_memory_space_constraint
    """,
    "jax.export": """
        default_export_platform deserialize DisabledSafetyCheck export Exported is_symbolic_dim
        maximum_supported_calling_convention_version minimum_supported_calling_convention_version
        register_namedtuple_serialization register_pytree_node_serialization shape_poly_decision
        symbolic_args_specs symbolic_shape SymbolicScope
    """,
    "jax.extend": "backend ffi ifrt_programs linear_util lowering sharding",
    "jax.extend.backend": """
        add_clear_backends_callback backend_xla_version backends clear_backends
        clear_in_memory_compilation_cache get_backend get_compile_options get_default_device ifrt_proxy
        register_backend_cache register_backend_factory
    """,
    "jax.ffi": """
        abstract_token build_ffi_lowering_function ffi_call ffi_lowering include_dir pycapsule
        register_ffi_target register_ffi_target_as_batch_partitionable register_ffi_type register_ffi_type_id
    """,
    "jax.lax": """
        AccuracyMode all_gather_done all_gather_invariant all_gather_p all_gather_reduced all_gather_start
        approx_max_k approx_min_k approx_top_k_p axis_size broadcast_like broadcast_p composite copy_p
        cumlogsumexp cumlogsumexp_p dce_sink dce_sink_p device_put_p DotAlgorithm DotAlgorithmLike
        DotAlgorithmPreset DotTransposeAlgorithmLike empty eq_to_p exp2 exp2_p FftType infeed infeed_p le_to_p
        logistic logistic_p lt_to_p mulhi mulhi_p optimization_barrier optimization_barrier_p outfeed outfeed_p
        pbroadcast pcast pdot platform_dependent polygamma polygamma_p PrecisionLike precv preduced psend pvary
        ragged_all_to_all ragged_all_to_all_p ragged_dot ragged_dot_general RaggedDotDimensionNumbers
        random_gamma_grad_p reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor
        reduce_xor_p scaled_dot scatter_apply scatter_sub scatter_sub_p select_p shape_as_value
        sharding_constraint_p split split_p square_p stack stack_p stage stage_p tie_in tie_in_p tile tile_p
        Tolerance unreduced_psum unreduced_psum_scatter unstack unstack_p with_sharding_constraint xeinsum
        zeros_like_array zeta zeta_p
    """,
    "jax.lax.linalg": """
        cholesky_update cholesky_update_p EighImplementation EigImplementation hessenberg hessenberg_p
        householder_product householder_product_p lu_pivots_to_permutation_p ormqr ormqr_p SvdAlgorithm
        symmetric_product symmetric_product_p tridiagonal tridiagonal_p
    """,
    "jax.memory": "Space",
    "jax.monitoring": """
        clear_event_listeners record_event record_event_duration_secs record_event_time_span record_scalar
        register_event_duration_secs_listener register_event_listener register_event_listener_with_kwargs
        register_event_time_span_listener register_scalar_listener unregister_event_duration_listener
        unregister_event_listener unregister_event_time_span_listener unregister_scalar_listener
    """,
    "jax.nn": """
        dot_product_attention get_scaled_dot_general_config identity log1mexp logmeanexp mish normalize
        scaled_dot_general scaled_matmul sparse_plus sparse_sigmoid squareplus standardize
    """,
    "jax.nn.initializers": "constant Initializer truncated_normal",
    "jax.numpy": """
        acos acosh alltrue argpartition asin asinh astype atan atan2 atanh bitwise_count bitwise_invert
        bitwise_left_shift bitwise_right_shift bool concat cumproduct cumulative_prod cumulative_sum DeviceArray
        fill_diagonal fix float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
        float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu from_dlpack frombuffer fromfile
        fromfunction fromiter frompyfunc fromstring in1d int1 int2 int4 isdtype issubsctype matrix_transpose
        matvec msort NINF NZERO partition permute_dims place polydiv pow product put put_along_axis PZERO round_
        row_stack sometrue spacing top_k trapezoid trapz ufunc uint1 uint2 uint4 unique_all unique_counts
        unique_inverse unique_values unstack vecdot vecmat
    """,
    "jax.numpy.linalg": "cross diagonal matmul matrix_norm matrix_transpose outer svdvals tensordot vecdot vector_norm",
    "jax.ops": "index index_add index_max index_min index_mul index_update",
    "jax.profiler": """
        ProfileData ProfileEvent ProfileOptions ProfilePlane register_subprocess StepTraceContext stop_server
        trace_function TraceContext
    """,
    "jax.random": """
        apply_round ball binomial bits chisquare clone cuda_prng default_prng_impl generalized_normal geometric
        key key_data key_dtype key_impl KeyArray loggamma lognormal multinomial orthogonal PRNGKeyArray rayleigh
        rbg_key rolled_loop_step rotate_left rotate_list shuffle threefry2x32_key threefry2x32_p threefry_2x32
        triangular unsafe_rbg_key wald wrap_key_data
    """,
    "jax.ref": "AbstractRef addupdate array_ref ArrayRef empty_ref free_ref freeze get new_ref Ref set swap",
    "jax.scipy": "cluster integrate spatial",
    "jax.scipy.linalg": """
        circulant companion convolution_matrix dft fiedler fiedler_companion funm hadamard hankel helmert
        hessenberg hilbert invhilbert invpascal leslie pascal polar_unitary qr_multiply rsf2csf schur
        solve_sylvester sqrtm toeplitz tril triu
    """,
    "jax.scipy.special": """
        bernoulli bessel_jn beta boxcox boxcox1p comb dawsn erfcx factorial fresnel gamma gammasgn hyp1f1 hyp2f1
        kl_div log_softmax loggamma owens_t poch rel_entr sici softmax spence sph_harm sph_harm_y wofz
    """,
    "jax.scipy.stats": """
        binom gaussian_kde gennorm gumbel_l gumbel_r mode multinomial rankdata sem truncnorm vonmises wrapcauchy
    """,
    "jax.sharding": """
        AbstractDevice AbstractMesh auto_axes AxisType AxisTypes explicit_axes get_abstract_mesh get_mesh
        GSPMDSharding make_single_device_sharding ManualAxisType Mesh MeshPspecSharding NamedSharding
        OpShardingSharding PartitionSpec PmapSharding PositionalSharding reshard set_mesh Sharding
        SingleDeviceSharding UnreducedKind use_abstract_mesh use_mesh XLACompatibleSharding
    """,
    "jax.stages": "ArgInfo Compiled CompilerOptions Lowered OutInfo Specialized Traced Wrapped",
    "jax.tree": """
        all broadcast flatten flatten_with_path leaves leaves_with_path map_with_path reduce_associative static
        structure transpose unflatten
    """,
    "jax.tree_util": """
        AttributeKeyPathEntry build_tree default_registry DictKey flatten_one_level flatten_one_level_with_keys
        FlattenedIndexKey GetAttrKey GetitemKeyPathEntry is_tree_node KeyEntry KeyPath keystr register_dataclass
        register_keypaths register_pytree_with_keys register_pytree_with_keys_class register_static SequenceKey
        tree_broadcast tree_flatten_with_path tree_leaves_with_path tree_map_with_path tree_multimap
        tree_reduce_associative
    """,
    "jax.typing": "ArrayLike DTypeLike",
    "numpy": """
        acos acosh alen alltrue asfarray asin asinh asscalar astype atan atan2 atanh bitwise_count
        bitwise_invert bitwise_left_shift bitwise_right_shift bool bool8 byte_bounds cast cfloat clongfloat
        complex complex_ concat core cumproduct cumulative_prod cumulative_sum DataSource deprecate disp
        distutils dtypes exceptions fastCopyAndTranspose find_common_type float float_ in1d Inf Infinity infty
        int int0 isdtype issctype issubclass_ issubsctype loads long longcomplex longfloat mat matrix_transpose
        matvec maximum_sctype msort NaN NINF NZERO obj2sctype object object0 permute_dims PINF pow product PZERO
        rank round_ row_stack safe_eval sctype2char sctypes singlecomplex sometrue str str0 string_ trapezoid
        trapz typeDict typing uint0 ulong unicode unicode_ unique_all unique_counts unique_inverse unique_values
        unstack vecdot vecmat void0
    """,
}
"""Names by module: what came, went or moved between JAX 0.2.5 and 0.11, NumPy 1.20 and 2.4."""

_MODULES = """
    jax.abstract_arrays jax.ad_util jax.api jax.cloud_tpu_init jax.config jax.custom_transpose jax.debug
    jax.experimental.ann jax.experimental.array jax.experimental.array_api jax.experimental.array_serialization
    jax.experimental.array_serialization.pytree_serialization
    jax.experimental.array_serialization.pytree_serialization_utils
    jax.experimental.array_serialization.serialization jax.experimental.array_serialization.tensorstore_impl
    jax.experimental.attrs jax.experimental.buffer_callback jax.experimental.callback
    jax.experimental.colocated_python jax.experimental.compilation_cache.cache_interface
    jax.experimental.compilation_cache.file_system_cache jax.experimental.compilation_cache.gfile_cache
    jax.experimental.compute_on jax.experimental.control_deps jax.experimental.custom_dce
    jax.experimental.custom_partitioning jax.experimental.doubledouble jax.experimental.export
    jax.experimental.fused jax.experimental.gda_serialization jax.experimental.general_map
    jax.experimental.global_device_array jax.experimental.hijax jax.experimental.host_callback
    jax.experimental.key_reuse jax.experimental.layout jax.experimental.loops jax.experimental.maps
    jax.experimental.multihost_utils jax.experimental.optimizers jax.experimental.optix jax.experimental.overlap
    jax.experimental.pallas jax.experimental.pallas.fuser jax.experimental.pallas.gpu
    jax.experimental.pallas.mosaic_gpu jax.experimental.pallas.tpu jax.experimental.pallas.tpu_sc
    jax.experimental.pallas.triton jax.experimental.profiler jax.experimental.random jax.experimental.rnn
    jax.experimental.scheduling_groups jax.experimental.serialize_executable jax.experimental.shard
    jax.experimental.shard_alike jax.experimental.shard_map jax.experimental.sharding jax.experimental.sparse_ops
    jax.experimental.stax jax.experimental.topologies jax.experimental.transfer jax.experimental.vectorize
    jax.experimental.x64_context jax.experimental.xla_metadata jax.export jax.extend jax.extend.backend
    jax.extend.core jax.extend.core.primitives jax.extend.ffi jax.extend.ifrt_programs jax.extend.linear_util
    jax.extend.lowering jax.extend.pallas jax.extend.random jax.extend.sharding jax.extend.source_info_util
    jax.extend.xla jax.ffi jax.image.scale jax.jaxpr_util jax.lax.lax jax.lax.lax_control_flow jax.lax.lax_fft
    jax.lax.lax_parallel jax.lax_linalg jax.lax_reference jax.lazy jax.linear_util jax.memory jax.monitoring
    jax.nn.functions jax.numpy.lax_numpy jax.numpy.polynomial jax.ops.scatter jax.pprint_util jax.prng jax.ref
    jax.scipy.cluster jax.scipy.cluster.vq jax.scipy.integrate jax.scipy.spatial jax.scipy.spatial.transform
    jax.scipy.stats.binom jax.scipy.stats.gennorm jax.scipy.stats.gumbel_l jax.scipy.stats.gumbel_r
    jax.scipy.stats.multinomial jax.scipy.stats.truncnorm jax.scipy.stats.vonmises jax.scipy.stats.wrapcauchy
    jax.sharding jax.source_info_util jax.stages jax.third_party jax.third_party.numpy jax.third_party.numpy.linalg
    jax.traceback_util jax.tree jax.typing jax.util numpy._core numpy.distutils numpy.dtypes numpy.exceptions
    numpy.strings flax.optim flax.nn flax.nnx flax.experimental.nnx
"""
"""Modules, likewise."""

_OPTIONS = """
    allow_f16_reductions array array_garbage_collection_guard auto_pcast captured_constants_report_frames
    captured_constants_warn_bytes check_static_indices collectives_common_channel_id
    compilation_cache_check_contents compilation_cache_dir compilation_cache_expect_pgle
    compilation_cache_include_metadata_in_key compilation_cache_max_size compiler_enable_remat_pass
    coordination_service cpu_collectives_implementation custom_jvp3 custom_vjp3 custom_vjp_disable_shape_check
    data_dependent_tracing_fallback debug_key_reuse debug_leaked_clients_on_clear_backends debug_log_modules
    default_dtype_bits disable_bwd_checks disable_vmap_shmap_error disallow_mesh_context_manager dump_ir_modes
    dump_ir_to dynamic_shapes eager_pmap embedded_constants_max_bytes enable_compilation_cache
    enable_custom_vjp_by_custom_transpose enable_empty_arrays enable_key_reuse_checks enable_memories enable_mlir
    enable_pgle error_checking_behavior_divide error_checking_behavior_nan error_checking_behavior_oob
    exec_time_optimization_effort experimental_name_stack experimental_subjaxpr_lowering_cache explain_cache_misses
    explicit_x64_dtypes export_calling_convention_version export_deserialize_expired_versions
    export_ignore_forward_compatibility gsda_out high_dynamic_range_gumbel host_callback_ad_transforms
    host_callback_inline host_callback_max_queue_byte_size host_callback_outfeed include_debug_info_in_dumps
    include_full_tracebacks_in_locations jit_pjit_api_merge legacy_prng_key log_checkpoint_residuals logging_level
    memory_fitting_effort memory_fitting_level mosaic_allow_hlo mutable_array_checks new_checkpoint no_execution
    no_tracing num_cpu_devices omnistaging optimization_level pallas_auto_assign_collective_ids
    pallas_enable_debug_checks pallas_poison_buffers pallas_use_mosaic_gpu pallas_verbose_errors
    parallel_functions_output_gda persistent_cache_enable_xla_caches persistent_cache_min_entry_size_bytes
    pgle_aggregation_percentile pgle_profiling_runs pjrt_client_create_options pmap_no_rank_reduction
    pmap_shmap_merge pprint_use_color ragged_dot_use_gpu_pallas_triton_lowering
    ragged_dot_use_ragged_dot_instruction raise_on_ppermute_sort_diff random_seed_offset refs_to_pins remat3
    remat_barrier_no_cotangents remat_opt_barrier remove_custom_partitioning_ptr_from_cache_key
    remove_size_one_mesh_axis_from_type safer_randint scan3 send_traceback_to_runtime serialization_version
    sharding_in_types share_autotune_config_between_hosts share_binary_between_hosts
    share_binary_between_hosts_timeout_ms softmax_custom_jvp source_url_schema spmd_mode thread_guard
    threefry_gpu_kernel_lowering traceback_in_locations_limit tracer_error_num_traceback_frames
    unique_mhlo_module_names use_cpp_shard_args use_direct_linearize use_emit_pipeline_primitive
    use_hlo_logistic_lowering use_magma use_original_compilation_cache_key_generation use_rgv3
    use_shardy_partitioner use_simplified_jaxpr_constants varying_axes_in_types vjp3 vmap_primitive
    xla_profile_version
"""
"""Options of JAX without their common `jax_`, likewise."""

_ARRAYS = r"(?:[\w.]+\.)?(?:ArrayImpl|DeviceArray|PRNGKeyArray|\w+Tracer)"
_OF_ARRAYS = "block_host_until_ready broadcast device_buffer device_buffers to_py unsafe_raw_array"
"""Attributes of arrays, likewise."""
_ARGUMENTS = {
    "clip": "a a_min a_max max min",
    "jit": "abstracted_axes compiler_options donate_argnames in_shardings inline out_shardings static_argnames",
    "make_mesh": "axis_types",
    "pjit": "in_axis_resources out_axis_resources in_shardings out_shardings",
    "shard_map": "auto axis_names check_rep check_vma",
    "with_sharding_constraint": "axis_resources shardings",
}
"""Arguments by function, likewise."""
_INTERNAL = r"jax\._src[\w.]*|jaxlib[\w.]*|jax\.lib[\w.]*|jax\.interpreters\.[\w.]+"
"""Modules that promise nothing: they change with every release."""


def _one_of(words: str) -> str:
    return f"(?:{'|'.join(map(re.escape, words.split()))})"


_IS_INSTALLED = r"(?: \((?:unknown location|[^)]*(?:site|dist)-packages[^)]*)\)|\W*$)"
"""Python names the file, which may be one of the program with the library's name."""


def _missing() -> str:
    ways = [
        rf"(?:module '{re.escape(module)}' has no attribute '{_one_of(names)}'|"
        rf"cannot import name '{_one_of(names)}' from '{re.escape(module)}'{_IS_INSTALLED})"
        for module, names in _NAMES.items()
    ]
    ways += [
        rf"module '(?:{_INTERNAL})' has no attribute '\w+'(?!.*Did you mean)",
        rf"cannot import name '\w+' from '(?:{_INTERNAL})'{_IS_INSTALLED}",
        r"module 'jax[\w.]*' has no attribute '_\w+'(?!.*Did you mean)",
        rf"No module named '(?:{_INTERNAL}|{_one_of(_MODULES)}(?:\.\w+)*)'",
        rf"(?:'Config' object has no attribute|Unrecognized config option:) '?jax_{_one_of(_OPTIONS)}\b",
        rf"'{_ARRAYS}' object has no attribute '{_one_of(_OF_ARRAYS)}'",
    ]
    ways += [
        rf"\b{function}\(\) got an unexpected keyword argument '{_one_of(names)}'"
        for function, names in _ARGUMENTS.items()
    ]
    # A file of the program with the library's name has none of the library's names.
    other = "(?!.*(?:partially initialized|consider renaming))"
    return rf"^(?:Attribute|Import|ModuleNotFound|Type)Error: {other}.{{0,200}}?(?:{'|'.join(ways)})"


MISSING = _missing()
"""A regular expression of what Python says of them."""
