# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Small configurations of transformers' models of images, of sound, and of both with
text: model type to (model's class, what its configuration is given)."""

import torch
import transformers

from three_steps import without_dropout

VIT = dict(
    image_size=32,
    patch_size=8,
    num_channels=3,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
)
_LABEL = "AutoModelForImageClassification"
_STAGES = dict(depths=[1, 1], embed_dim=16, num_heads=[2, 4], window_size=4)

IMAGES = {
    "beit": (_LABEL, dict(VIT, use_relative_position_bias=True)),
    "bit": (
        _LABEL,
        dict(hidden_sizes=[32, 64], depths=[1, 1], embedding_size=32, num_groups=8),
    ),
    "convnext": (_LABEL, dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)),
    "convnextv2": (_LABEL, dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)),
    "cvt": (
        _LABEL,
        dict(embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3]),
    ),
    "data2vec-vision": (_LABEL, VIT),
    "deit": ("DeiTForImageClassification", VIT),
    "dinov2": (_LABEL, VIT),
    "dinov2_with_registers": (_LABEL, VIT),
    "efficientnet": (
        _LABEL,
        dict(
            width_coefficient=0.25,
            depth_coefficient=0.25,
            hidden_dim=320,
            image_size=32,
        ),
    ),
    "focalnet": (
        _LABEL,
        dict(image_size=32, embed_dim=16, depths=[1, 1], focal_levels=[2, 2])
        | dict(focal_windows=[3, 3], hidden_sizes=[16, 32]),
    ),
    "glpn": (
        "AutoModelForDepthEstimation",
        dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16)
        | dict(num_attention_heads=[1, 2, 2, 4]),
    ),
    "hiera": (
        _LABEL,
        dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 1, 1])
        | dict(num_heads=[1, 2, 4, 8]),
    ),
    "ijepa": (_LABEL, VIT),
    "levit": (
        "LevitForImageClassification",
        dict(hidden_sizes=[16, 32, 48], num_attention_heads=[2, 2, 2])
        | dict(depths=[1, 1, 1], key_dim=[8, 8, 8], image_size=64),
    ),
    "mobilenet_v1": (_LABEL, dict(depth_multiplier=0.25, image_size=64)),
    "mobilenet_v2": (_LABEL, dict(depth_multiplier=0.25, image_size=64)),
    "mobilevit": (
        _LABEL,
        dict(
            image_size=64,
            hidden_sizes=[32, 32, 32],
            neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32],
        ),
    ),
    "mobilevitv2": (_LABEL, dict(image_size=64, width_multiplier=0.25)),
    "poolformer": (_LABEL, dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])),
    "pvt": (
        _LABEL,
        dict(image_size=32, hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1])
        | dict(num_attention_heads=[1, 2, 5, 8]),
    ),
    "pvt_v2": (
        _LABEL,
        dict(image_size=32, hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1])
        | dict(num_attention_heads=[1, 2, 5, 8]),
    ),
    "regnet": (_LABEL, dict(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1])),
    "resnet": (
        _LABEL,
        dict(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    ),
    "segformer": (
        "AutoModelForSemanticSegmentation",
        dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16)
        | dict(num_attention_heads=[1, 2, 2, 4]),
    ),
    "swin": (_LABEL, dict(_STAGES, image_size=32, patch_size=2)),
    "swinv2": (_LABEL, dict(_STAGES, image_size=32, patch_size=2)),
    "vit": (_LABEL, VIT),
    "vit_mae": (
        "ViTMAEForPreTraining",
        dict(VIT, decoder_num_hidden_layers=1, decoder_hidden_size=32)
        | dict(decoder_num_attention_heads=2, decoder_intermediate_size=32),
    ),
    "vit_msn": (_LABEL, VIT),
}

_SOUND = dict(
    vocab_size=32,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    conv_dim=(16, 16),
    conv_kernel=(10, 3),
    conv_stride=(5, 2),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=4,
    # Masks of the input are drawn on the CPU, another one at each step.
    apply_spec_augment=False,
    mask_time_prob=0.0,
    ctc_zero_infinity=True,
)
_CTC = "AutoModelForCTC"
SOUNDS = {
    "data2vec-audio": (_CTC, dict(_SOUND, conv_pos_kernel_size=3)),
    "hubert": (_CTC, _SOUND),
    "sew": (_CTC, dict(_SOUND, squeeze_factor=2)),
    "unispeech": (_CTC, dict(_SOUND, num_ctc_classes=32)),
    "unispeech-sat": (_CTC, _SOUND),
    "wav2vec2": (_CTC, _SOUND),
    "wav2vec2-conformer": (_CTC, dict(_SOUND, position_embeddings_type="relative")),
    "wavlm": (_CTC, _SOUND),
}

_WHISPER = dict(
    vocab_size=64,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    num_mel_bins=16,
    max_source_positions=16,
    max_target_positions=32,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    suppress_tokens=None,
    begin_suppress_tokens=None,
)
_TEXT = dict(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
)
_PAIR = dict(text_config=_TEXT, vision_config=VIT, projection_dim=16)
OTHERS = {
    "audio-spectrogram-transformer": (
        "AutoModelForAudioClassification",
        dict(VIT, max_length=32, num_mel_bins=16, frequency_stride=8, time_stride=8),
    ),
    "clip": ("CLIPModel", _PAIR),
    "detr": (
        "DetrForObjectDetection",
        dict(
            backbone_config=dict(
                model_type="resnet",
                embedding_size=16,
                hidden_sizes=[16, 32, 48, 64],
                depths=[1, 1, 1, 1],
                out_features=["stage4"],
            ),
            backbone=None,
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            num_queries=6,
            num_labels=3,
        ),
    ),
    "siglip": ("SiglipModel", _PAIR),
    "speech_to_text": (
        "Speech2TextForConditionalGeneration",
        dict(_WHISPER, input_feat_per_channel=16, max_source_positions=64),
    ),
    "whisper": ("WhisperForConditionalGeneration", _WHISPER),
}

ALL = {**IMAGES, **SOUNDS, **OTHERS}


def model_of(kind):
    name, given = ALL[kind]
    config = transformers.AutoConfig.for_model(kind, **given)
    if "ImageClassification" in name:
        config.num_labels = 3
    kind = getattr(transformers, name)
    make = kind.from_config if name.startswith("Auto") else kind
    return make(without_dropout(config))


def batch_of(kind, model):
    """Two rows of what the model takes, and labels."""
    config = model.config
    if kind in IMAGES:
        size = getattr(config, "image_size", 32)
        size = 64 if kind in ("bit", "segformer", "glpn", "resnet", "regnet") else size
        size = min(size[0] if isinstance(size, (list, tuple)) else size, 64)
        pixels = torch.randn(2, 3, size, size)
        if kind == "segformer":
            return {"pixel_values": pixels, "labels": torch.randint(2, (2, size, size))}
        if kind == "glpn":
            return {"pixel_values": pixels, "labels": torch.rand(2, size, size) + 0.1}
        if kind == "vit_mae":
            return {"pixel_values": pixels, "noise": torch.rand(2, 16)}
        return {"pixel_values": pixels, "labels": torch.tensor([0, 2])}
    if kind in SOUNDS:
        return {
            "input_values": torch.randn(2, 400),
            "labels": torch.randint(1, 32, (2, 5)),
        }
    return _of_others(kind)


def _of_others(kind):
    tokens = torch.randint(3, 64, (2, 8))
    pixels = torch.randn(2, 3, 32, 32)
    if kind == "audio-spectrogram-transformer":
        return {"input_values": torch.randn(2, 32, 16), "labels": torch.tensor([0, 1])}
    if kind in ("clip", "siglip"):
        return {"input_ids": tokens, "pixel_values": pixels, "return_loss": True}
    if kind == "detr":
        boxes = torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.2, 0.1]])
        targets = [{"class_labels": torch.tensor([0, 2]), "boxes": boxes}] * 2
        return {"pixel_values": torch.randn(2, 3, 64, 64), "labels": targets}
    if kind == "whisper":
        return {"input_features": torch.randn(2, 16, 32), "labels": tokens}
    return {"input_features": torch.randn(2, 32, 16), "labels": tokens}
