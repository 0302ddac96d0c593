# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What to do where PyTorch has a name and Holdfast has not: one table, name -> advice.

Errors about missing names look here when they are shown, not before.
"""

CLIENT = (
    "PyTorch itself as the client has it: `pip install torch holdfast-torch` "
    "(docs/pytorch.md)."
)

# A module, with all below it -> what is so about it. The longest match counts.
_MODULES = {
    "torch.Generator": "seed, manual_seed, get_state and set_state are here. CLIENT",
    "torch.UntypedStorage": "x.numpy().view(...) has the bytes as any type. CLIENT",
    "torch._C": "PyTorch's compiled core is not here; CLIENT",
    "torch._dynamo": "Programs run as they are written, so nothing is compiled; CLIENT",
    "torch._export": "No graph is kept here; CLIENT",
    "torch._functorch": "torch.func has the public names. CLIENT",
    "torch._higher_order_ops": "Write the loop or the `if` in Python. CLIENT",
    "torch._inductor": "Programs run as written, so nothing is compiled; CLIENT",
    "torch._library": "No custom operators are registered here; CLIENT",
    "torch._subclasses": "device='meta' gives shapes without data. CLIENT",
    "torch.accelerator": "torch.accelerator itself has what is here of it. CLIENT",
    "torch.amp": "torch.amp.autocast and torch.amp.GradScaler are here. CLIENT",
    "torch.ao": "No quantized types here: model.to(torch.bfloat16) halves it. CLIENT",
    "torch.autograd": "It is part of PyTorch's engine in the process. CLIENT",
    "torch.backends": "The daemon chooses libraries and kernels; leave the switch out.",
    "torch.compiler": "Nothing is compiled, saved or guarded here; CLIENT",
    "torch.contrib": "It is not kept up in PyTorch either. CLIENT",
    "torch.cpu": "The CPU is the daemon's, with one stream. CLIENT",
    "torch.cuda": (
        "The GPU is the daemon's: `holdfast top`, holdfast.memory and "
        "torch.cuda.memory_stats() tell of it. CLIENT"
    ),
    "torch.cuda.CUDAGraph": (
        "The daemon records what repeats by itself: leave the graph out. CLIENT"
    ),
    "torch.cuda.graph": (
        "The daemon records what repeats by itself: leave the graph out. CLIENT"
    ),
    "torch.distributed": (
        "One daemon owns one machine's devices: groups are of one process, and "
        "nn.DataParallel works. CLIENT"
    ),
    "torch.distributions": "It is newer than the distributions here. CLIENT",
    "torch.export": "No graph is kept here; CLIENT",
    "torch.fft": "numpy.fft takes tensors. CLIENT",
    "torch.func": "grad, vmap, jacrev, jvp and functional_call are here. CLIENT",
    "torch.functional": "Look for it in torch itself. CLIENT",
    "torch.futures": "concurrent.futures does for programs of one process. CLIENT",
    "torch.fx": "Nothing is traced here; CLIENT",
    "torch.hub": "Files are loaded, nothing is downloaded. CLIENT",
    "torch.jit": "Programs run as written: leave TorchScript out. CLIENT",
    "torch.library": (
        "No custom operators are registered here: call the Python function, or write "
        "an autograd.Function. CLIENT"
    ),
    "torch.linalg": "numpy.linalg takes tensors. CLIENT",
    "torch.masked": "masked.sum, mean, softmax, ... of a mask are here. CLIENT",
    "torch.monitor": "`holdfast top` and the daemon's metrics count. CLIENT",
    "torch.mps": "No daemon computes on Apple's GPUs. CLIENT",
    "torch.mtia": "No daemon computes on MTIA. CLIENT",
    "torch.multiprocessing": (
        "Tensors go through queues and pipes as they are. CLIENT"
    ),
    "torch.nativert": "No graph is kept here; CLIENT",
    "torch.nested": "Use padding with a mask, or packed sequences. CLIENT",
    "torch.nn": "Write it as a Module of what is here. CLIENT",
    "torch.nn.Module.ipu": "No daemon computes on such a device. CLIENT",
    "torch.nn.Module.mtia": "No daemon computes on such a device. CLIENT",
    "torch.nn.Module.xpu": "No daemon computes on such a device. CLIENT",
    "torch.nn.attention": (
        "scaled_dot_product_attention, sdpa_kernel and flex_attention are here. CLIENT"
    ),
    "torch.nn.attention.varlen": "Use attention with a mask. CLIENT",
    "torch.nn.functional": "Write it in ops of torch. CLIENT",
    "torch.nn.intrinsic": "No quantized types or fused modules here. CLIENT",
    "torch.nn.parallel": (
        "One daemon owns one machine's devices; nn.DataParallel works. CLIENT"
    ),
    "torch.nn.qat": "No quantized types here. CLIENT",
    "torch.nn.quantizable": "No quantized types here. CLIENT",
    "torch.nn.quantized": "No quantized types here. CLIENT",
    "torch.numa": "The daemon's threads are the daemon's: `holdfastd --help`. CLIENT",
    "torch.onnx": (
        "No graph is kept here: save the state_dict() and export the same module "
        "with PyTorch. CLIENT"
    ),
    "torch.optim": "The optimizer's class is here; its inner functions are not. CLIENT",
    "torch.overrides": "__torch_function__ is asked per op here. CLIENT",
    "torch.package": "Save the state_dict() and ship the code as a wheel. CLIENT",
    "torch.profiler": "torch.profiler.profile and `holdfast trace` are here. CLIENT",
    "torch.quantization": (
        "No quantized types here: model.to(torch.bfloat16) halves it. CLIENT"
    ),
    "torch.quasirandom": "scipy.stats.qmc.Sobol draws such numbers. CLIENT",
    "torch.random": "manual_seed, Generator and fork_rng are here. CLIENT",
    "torch.return_types": "Results have the fields' names, not the type's. CLIENT",
    "torch.serialization": "load, save, safe globals and mmap are here. CLIENT",
    "torch.signal": "scipy.signal takes tensors. CLIENT",
    "torch.sparse": "sparse_coo_tensor and sparse.mm are here. CLIENT",
    "torch.special": "scipy.special takes tensors. CLIENT",
    "torch.storage": "x.untyped_storage() tells size and address. CLIENT",
    "torch.testing": "assert_close and make_tensor are here. CLIENT",
    "torch.types": "Use typing's own names. CLIENT",
    "torch.utils": "It is part of PyTorch's own tooling. CLIENT",
    "torch.utils._python_dispatch": "__torch_function__ is asked per op here. CLIENT",
    "torch.utils.checkpoint": "checkpoint and checkpoint_sequential are here. CLIENT",
    "torch.utils.cpp_extension": (
        "An op is written in the daemon (docs/adding_an_op.md), or in Python. CLIENT"
    ),
    "torch.utils.data": "Dataset, DataLoader and samplers are here; no pipes. CLIENT",
    "torch.utils.flop_counter": "`holdfast trace` and torch.profiler time ops. CLIENT",
    "torch.utils.tensorboard": "SummaryWriter needs `pip install tensorboard`.",
    "torch.version": "torch.__version__ is here. CLIENT",
    "torch.xpu": "No daemon computes on Intel's GPUs. CLIENT",
    "torchvision": (
        "holdfast.vision has the usual data sets, transforms and models. CLIENT"
    ),
}

# What one name in torch stands for, for words with the same advice: see _group().
_GROUPS = {
    "Programs run as written, and TorchScript's types are not here; CLIENT": """
        AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType Block
        BenchmarkConfig BenchmarkExecutionStats BoolType BufferDict CallStack Capsule
        ClassType Code CompilationUnit CompleteArgumentSpec ComplexType
        DeepCopyMemoTable ConcreteModuleType ConcreteModuleTypeBuilder
        DeserializationStorageContext DeviceObjType DictType EnumType ErrorReport
        ExecutionPlan FatalError FileCheck FloatType FunctionSchema FutureType Gradient
        Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType
        JITException ListType LiteScriptModule LockingLogger ModuleDict Node NoneType
        NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType
        PyTorchFileReader PyTorchFileWriter RRefType SUM ScriptClass ScriptClassFunction
        ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList
        ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject
        ScriptObjectProperty SerializationStorageContext StaticModule StreamObjType
        StringType SymBoolType SymIntType TensorType ThroughputBenchmark TracingState
        TupleType Type UnionType Use Value fork import_ir_module
        import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema
        parse_type_comment unify_type_list wait Future
    """,
    "No sizes are symbols here: shapes are Python's ints. CLIENT": """
        SymBool SymFloat SymInt sym_constrain_range sym_constrain_range_for_size
        sym_fresh_size sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt
        sym_sum
    """,
    "The client has no dispatcher; CLIENT": """
        DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet
        ExcludeDispatchKeyGuard Tag
    """,
    "A tensor's memory is x.untyped_storage(); torch.UntypedStorage is its type.": """
        BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage IntStorage
        LongStorage ShortStorage TypedStorage BFloat16Storage ComplexDoubleStorage
        ComplexFloatStorage HalfStorage
    """,
    "The daemon chooses libraries: call torch.nn.functional's function.": """
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution
        cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
        cudnn_grid_sampler cudnn_is_acceptable miopen_batch_norm miopen_convolution
        miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
        miopen_ctc_loss miopen_depthwise_convolution miopen_rnn
        mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
        mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer convolution conv_tbc
    """,
    "torch.nn.functional has it.": """
        affine_grid_generator batch_norm binary_cross_entropy_with_logits ctc_loss
        cosine_embedding_loss embedding embedding_bag embedding_renorm_
        hinge_embedding_loss instance_norm kl_div margin_ranking_loss native_dropout
        poisson_nll_loss triplet_margin_loss dropout_ alpha_dropout_ feature_dropout
        feature_dropout_ feature_alpha_dropout_
    """,
    "nn.SyncBatchNorm and nn.BatchNorm2d compute it; CLIENT": """
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats
    """,
    "The modules nn.LSTM, nn.GRU and nn.RNN compute it.": """
        gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    """,
    "No quantized types here: quantize the saved state_dict(). CLIENT": """
        choose_qparams_optimized dequantize empty_quantized fbgemm_linear_fp16_weight
        fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
        fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
        fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis q_per_channel_scales
        q_per_channel_zero_points q_scale q_zero_point qint32 qint8 qscheme
        quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
        quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d
        quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell
        quantized_rnn_tanh_cell quint2x4 quint4x2 quint8
    """,
    "The daemon has no such element type; float16 or int64 hold more. CLIENT": """
        bcomplex32 bit bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32
        float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
        float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5
        uint6 uint7 uint16 uint32 uint64
    """,
    "Take the view and clone() it.": """
        as_strided_ detach_copy slice_copy view_as_complex_copy view_as_real_copy
        slice_inverse
    """,
    "Only COO here: x.to_sparse(), sparse_coo_tensor. CLIENT": """
        ccol_indices ccol_indices_copy col_indices col_indices_copy crow_indices
        crow_indices_copy dense_dim hsmm hspmm indices indices_copy is_coalesced
        resize_as_sparse_ row_indices row_indices_copy saddmm smm sparse_bsc_tensor
        sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor
        sparse_dim sparse_resize_ sparse_resize_and_clear_ sspaddmm to_sparse_bsc
        to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values values_copy
    """,
    "No daemon computes on such a device; CLIENT": """
        get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled
        is_autocast_xla_enabled is_vulkan_available set_autocast_ipu_dtype
        set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled ipu
        mtia xpu to_mkldnn
    """,
    "`with torch.autograd.detect_anomaly():` sets and asks it.": """
        is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled
    """,
    "`with torch.autocast(...)` does it.": """
        autocast_decrement_nesting autocast_increment_nesting is_autocast_cache_enabled
        set_autocast_cache_enabled
    """,
}

# Single names of torch and of Tensor.
_NAMES = {
    "AcceleratorError": "Errors of a device are holdfast.errors.HoldfastError.",
    "Event": "torch.cuda.Event is here; a session has one stream. CLIENT",
    "Stream": "torch.cuda.Stream is here; a session has one stream. CLIENT",
    "GradScaler": "torch.amp.GradScaler is the same.",
    "cond": "Write the `if` in Python: programs run as written.",
    "const_data_ptr": "x.data_ptr() is here.",
    "dim_order": "x.stride() tells the order.",
    "eig": "torch.linalg.eig is here; PyTorch has removed this one.",
    "from_file": "torch.from_numpy(numpy.memmap(...)) reads a file.",
    "get_deterministic_debug_mode": "torch.are_deterministic_algorithms_enabled().",
    "grad_dtype": "A gradient has its tensor's type here. CLIENT",
    "has_lapack": "torch.linalg works on every daemon.",
    "has_mkl": "The daemon computes with oneDNN.",
    "has_openmp": "The daemon has threads of its own: `holdfastd --help`.",
    "has_spectral": "torch.fft works on every daemon.",
    "hash_tensor": "hash(x.numpy().tobytes()) hashes the elements.",
    "index": "x[...] is here.",
    "init_num_threads": "The daemon has threads of its own: `holdfastd --help`.",
    "is_conj": "Nothing is conjugated lazily here.",
    "is_deterministic_algorithms_warn_only_enabled": (
        "torch.are_deterministic_algorithms_enabled() is here."
    ),
    "is_storage": "isinstance(x, torch.UntypedStorage) is the same.",
    "is_warn_always_enabled": "Python's `warnings` filters are asked.",
    "is_distributed": "A tensor is of one device here.",
    "lobpcg": "torch.linalg.eigh is here; scipy.sparse.linalg.lobpcg for a few.",
    "lstsq": "torch.linalg.lstsq is here; PyTorch has removed this one.",
    "module_load": "load_state_dict(assign=True), or x.copy_(y).",
    "name": "A tensor has no name here. CLIENT",
    "native_norm": "torch.linalg.vector_norm is here.",
    "norm_except_dim": "torch.linalg.vector_norm(v, dim=..., keepdim=True) is here.",
    "nuclear_norm": "torch.linalg.matrix_norm(x, 'nuc') is here.",
    "output_nr": "Which output of grad_fn a tensor is, is not told here. CLIENT",
    "record_stream": "A session has one stream: leave it out.",
    "reinforce": "PyTorch has removed it: torch.distributions' log_prob().",
    "resize_as": "x.resize_as_(y) is here.",
    "set_deterministic_debug_mode": "torch.use_deterministic_algorithms() is here.",
    "solve": "torch.linalg.solve is here; PyTorch has removed this one.",
    "storage_type": "A tensor's memory is x.untyped_storage().",
    "thread_safe_generator": "Give each thread a torch.Generator.",
    "to_padded_tensor": "Tensors are never nested here. CLIENT",
    "unravel_index": "numpy.unravel_index takes and gives arrays.",
    "unsafe_split_with_sizes": "x.split(sizes) is here.",
    "volatile": "PyTorch has removed it: `with torch.no_grad():`.",
}
# Where a name of _NAMES and _GROUPS stands.
_PLAIN = ("torch", "torch.Tensor", "torch.cuda")


def _plain():
    """_NAMES with the words of _GROUPS, made when it is asked for."""
    names = dict(_NAMES)
    for text, words in _GROUPS.items():
        names.update(dict.fromkeys(words.split(), text))
    return names


def _is_single(name):
    owner, _, last = name.rpartition(".")
    return owner in _PLAIN and last in _plain()


def find(name):
    """The advice about "torch.export.Dim" and the like; None where there is none."""
    owner, _, last = name.rpartition(".")
    text = _MODULES.get(name)
    if text is None and owner in _PLAIN:
        text = _plain().get(last)
    while text is None and owner not in ("", "torch"):
        text = _MODULES.get(owner)
        owner = owner.rpartition(".")[0]
    return None if text is None else text.replace("CLIENT", CLIENT)


def about(name, near=None):
    """The same; for what the table does not know by name, the name `near` that is here,
    or how to look."""
    known = find(name)
    if near is not None and name not in _MODULES and not _is_single(name):
        return f"Did you mean: {near!r}? {known or ''}".rstrip()
    return known or (
        "Is it spelt as PyTorch spells it? If so, it is newer than this package: "
        + CLIENT
    )
