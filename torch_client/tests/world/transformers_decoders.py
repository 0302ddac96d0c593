# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Small configurations of transformers' decoders: model type to what its
configuration is given."""

BASE = dict(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
MLP = dict(BASE, intermediate_size=48)
GROUPED = dict(MLP, num_key_value_heads=2)
HEADS = dict(GROUPED, head_dim=8)

DENSE = {
    "apertus": GROUPED,
    "arcee": GROUPED,
    "biogpt": MLP,
    "bitnet": GROUPED,
    "bloom": BASE,
    "codegen": dict(BASE, rotary_dim=4),
    "cohere": GROUPED,
    "cohere2": GROUPED,
    "ctrl": dict(BASE, dff=48),
    "diffllama": GROUPED,
    "doge": GROUPED,
    "ernie4_5": HEADS,
    "exaone4": dict(GROUPED, sliding_window=8),
    "falcon": BASE,
    "gemma": HEADS,
    "gemma2": dict(HEADS, query_pre_attn_scalar=8, sliding_window=8),
    "gemma3_text": dict(HEADS, sliding_window=8),
    "glm": HEADS,
    "glm4": HEADS,
    "gpt2": BASE,
    "gpt_bigcode": BASE,
    "gpt_neo": dict(BASE, attention_types=[[["global", "local"], 1]], window_size=8),
    "gpt_neox": MLP,
    "gptj": dict(BASE, rotary_dim=4),
    "granite": GROUPED,
    "helium": HEADS,
    "hunyuan_v1_dense": HEADS,
    "jais2": GROUPED,
    "lfm2": GROUPED,
    "llama": GROUPED,
    "ministral": HEADS,
    "mistral": GROUPED,
    "modernbert-decoder": dict(MLP, local_attention=8),
    "mpt": dict(d_model=32, n_heads=4, n_layers=2, vocab_size=64, max_seq_len=64),
    "nanochat": GROUPED,
    "nemotron": GROUPED,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "olmo3": GROUPED,
    "openai-gpt": BASE,
    "opt": dict(BASE, ffn_dim=48, word_embed_proj_dim=32),
    "persimmon": MLP,
    "phi": MLP,
    "phi3": GROUPED,
    "qwen2": GROUPED,
    "qwen3": HEADS,
    "seed_oss": HEADS,
    "smollm3": GROUPED,
    "stablelm": GROUPED,
    "starcoder2": GROUPED,
    "vaultgemma": HEADS,
    "xglm": dict(BASE, d_model=32, num_layers=2, attention_heads=4, ffn_dim=48),
}

_EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=16)
_LATENT = dict(
    _EXPERTS,
    num_key_value_heads=4,
    n_routed_experts=4,
    n_shared_experts=1,
    first_k_dense_replace=1,
    kv_lora_rank=16,
    q_lora_rank=16,
    qk_rope_head_dim=8,
    qk_nope_head_dim=8,
    v_head_dim=8,
    n_group=1,
    topk_group=1,
)

EXPERTS = {
    "deepseek_v2": dict(MLP, **_LATENT),
    "deepseek_v3": dict(MLP, **_LATENT),
    "ernie4_5_moe": dict(GROUPED, moe_num_experts=4, moe_k=2, moe_intermediate_size=16),
    "glm4_moe": dict(HEADS, **_EXPERTS, n_routed_experts=4, n_group=1, topk_group=1),
    "gpt_oss": dict(
        HEADS, num_local_experts=4, num_experts_per_tok=2, sliding_window=8
    ),
    "granitemoe": dict(GROUPED, num_local_experts=4, num_experts_per_tok=2),
    "mixtral": dict(GROUPED, num_local_experts=4),
    "olmoe": dict(GROUPED, num_experts=4, num_experts_per_tok=2),
    "phimoe": dict(
        GROUPED, num_local_experts=4, router_jitter_noise=0.0, input_jitter_noise=0.0
    ),
    "qwen2_moe": dict(
        GROUPED, **_EXPERTS, num_experts=4, shared_expert_intermediate_size=32
    ),
    "qwen3_moe": dict(HEADS, **_EXPERTS, num_experts=4),
}

STATE_SPACE = {
    "bamba": dict(
        GROUPED,
        attn_layer_indices=[1],
        mamba_n_heads=4,
        mamba_d_head=16,
        mamba_d_state=8,
        mamba_n_groups=1,
        mamba_chunk_size=8,
    ),
    "falcon_mamba": dict(BASE, state_size=4),
    "jamba": dict(
        GROUPED,
        num_experts=2,
        expert_layer_period=2,
        expert_layer_offset=1,
        attn_layer_period=2,
        attn_layer_offset=1,
        mamba_d_state=4,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
    ),
    "mamba": dict(BASE, state_size=4),
    "mamba2": dict(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=8,
        num_heads=4,
        head_dim=16,
        expand=2,
        n_groups=1,
        chunk_size=8,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "recurrent_gemma": dict(
        HEADS, lru_width=32, attention_window_size=8, num_hidden_layers=3
    ),
    "rwkv": dict(
        vocab_size=64,
        context_length=32,
        hidden_size=32,
        attention_hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=48,
    ),
}

ALL = {**DENSE, **EXPERTS, **STATE_SPACE}
