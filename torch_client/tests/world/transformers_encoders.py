# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Small configurations of transformers' encoders of text and of its encoder-decoders:
model type to what its configuration is given."""

import torch
import transformers

from three_steps import without_dropout

BERT = dict(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
    pad_token_id=0,
)
_DISENTANGLED = dict(
    BERT, relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0
)

MASKED = {
    "albert": dict(BERT, embedding_size=16),
    "bert": BERT,
    "big_bird": dict(BERT, attention_type="original_full"),
    "camembert": BERT,
    "convbert": dict(BERT, embedding_size=32, head_ratio=2),
    "data2vec-text": BERT,
    "deberta": _DISENTANGLED,
    "deberta-v2": dict(_DISENTANGLED, position_buckets=16, share_att_key=True),
    "distilbert": dict(
        vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=48, pad_token_id=0
    ),
    "electra": dict(BERT, embedding_size=16),
    "ernie": BERT,
    "esm": dict(BERT, mask_token_id=1),
    "eurobert": dict(BERT, num_key_value_heads=2),
    "flaubert": dict(vocab_size=64, emb_dim=32, n_layers=2, n_heads=4, pad_index=0),
    "fnet": dict(BERT, tpu_short_seq_length=16),
    "ibert": BERT,
    "layoutlm": BERT,
    "longformer": dict(BERT, attention_window=[4, 4], max_position_embeddings=80),
    "megatron-bert": BERT,
    "mobilebert": dict(
        BERT, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16
    ),
    "modernbert": dict(BERT, local_attention=8, global_attn_every_n_layers=2),
    "mpnet": BERT,
    "nystromformer": dict(BERT, num_landmarks=4, segment_means_seq_len=16),
    "rembert": dict(BERT, input_embedding_size=16, output_embedding_size=32),
    "roberta": BERT,
    "roberta-prelayernorm": BERT,
    "roc_bert": dict(BERT, pronunciation_vocab_size=64, shape_vocab_size=64),
    "roformer": dict(BERT, embedding_size=32),
    "squeezebert": dict(BERT, embedding_size=32),
    "xlm": dict(vocab_size=64, emb_dim=32, n_layers=2, n_heads=4, pad_index=0),
    "xlm-roberta": BERT,
    "xmod": dict(BERT, languages=["en_XX"], default_language="en_XX"),
}

_T5 = dict(
    vocab_size=64,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_heads=4,
    pad_token_id=0,
    eos_token_id=1,
    decoder_start_token_id=0,
)
_BART = dict(
    vocab_size=64,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    forced_eos_token_id=None,
    decoder_start_token_id=2,
)

SEQUENCES = {
    "bart": _BART,
    "bigbird_pegasus": dict(_BART, attention_type="original_full"),
    "blenderbot": _BART,
    "blenderbot-small": _BART,
    "led": dict(
        {k: v for k, v in _BART.items() if k != "max_position_embeddings"},
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
        attention_window=[4, 4],
    ),
    "longt5": dict(_T5, local_radius=3, encoder_attention_type="local"),
    "m2m_100": _BART,
    "marian": _BART,
    "mbart": _BART,
    "mt5": dict(_T5, feed_forward_proj="gated-gelu"),
    "mvp": _BART,
    "pegasus": _BART,
    "pegasus_x": dict(_BART, block_size=4, num_global_tokens=2),
    "plbart": _BART,
    "switch_transformers": dict(
        _T5,
        num_experts=2,
        num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
        router_jitter_noise=0.0,
    ),
    "t5": _T5,
    "umt5": _T5,
}

ALL = {**MASKED, **SEQUENCES}


def model_of(kind):
    config = without_dropout(transformers.AutoConfig.for_model(kind, **ALL[kind]))
    if kind in MASKED:
        return transformers.AutoModelForMaskedLM.from_config(config)
    return transformers.AutoModelForSeq2SeqLM.from_config(config)


def batch_of(kind, model):
    """16 tokens of two rows, the second with padding."""
    tokens = torch.randint(3, 64, (2, 16))
    mask = torch.ones_like(tokens)
    mask[1, 12:] = 0
    if kind in MASKED:
        # these two take none of one row each
        named = {} if kind in ("fnet", "nystromformer") else {"attention_mask": mask}
        return {"input_ids": tokens, "labels": tokens, **named}
    labels = torch.randint(3, 64, (2, 8))
    return {"input_ids": tokens, "attention_mask": mask, "labels": labels}
