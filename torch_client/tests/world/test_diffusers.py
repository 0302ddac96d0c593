# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""diffusers: networks, schedulers and a pipeline of random weights."""

import copy

import pytest
import torch

diffusers = pytest.importorskip("diffusers")

from three_steps import assert_near, compare  # noqa: E402


def unet(**more):
    return diffusers.UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        **more,
    )


def conditional():
    return diffusers.UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
    )


def coder():
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
    )


def transformer():
    return diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
        norm_num_groups=8,
    )


def of_sample(output):
    return output.sample.square().mean()


def test_unet(device):
    batch = {"sample": torch.randn(2, 3, 8, 8), "timestep": torch.tensor([3, 7])}
    compare(unet(), batch, device, loss=of_sample)


def test_conditional_unet(device):
    batch = {
        "sample": torch.randn(2, 4, 8, 8),
        "timestep": torch.tensor([3, 7]),
        "encoder_hidden_states": torch.randn(2, 5, 16),
    }
    compare(conditional(), batch, device, loss=of_sample)


def test_autoencoder(device):
    compare(coder(), [torch.randn(2, 3, 16, 16)], device, loss=of_sample)


def test_transformer(device):
    batch = {
        "hidden_states": torch.randn(2, 4, 8, 8),
        "timestep": torch.tensor([3, 7]),
        "class_labels": torch.tensor([1, 4]),
    }
    model = transformer()
    for module in model.modules():  # labels are dropped by chance in training
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    compare(model, batch, device, loss=of_sample)


SCHEDULERS = (
    "DDIM DDPM DEISMultistep DPMSolverMultistep EulerAncestralDiscrete EulerDiscrete "
    "HeunDiscrete LMSDiscrete PNDM UniPCMultistep"
).split()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(device, name):
    found = []
    start, guess = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    for place in ("cpu", device):
        scheduler = getattr(diffusers, name + "Scheduler")(num_train_timesteps=50)
        scheduler.set_timesteps(5, device=place)
        x = start.to(place) * scheduler.init_noise_sigma
        generator = torch.Generator().manual_seed(0)
        takes = (
            {"generator": generator} if "Ancestral" in name or name == "DDPM" else {}
        )
        for t in scheduler.timesteps:
            scaled = scheduler.scale_model_input(x, t)
            x = scheduler.step(guess.to(place) * 0.3 + scaled * 0.1, t, x, **takes)[0]
        assert x.device.type == place
        found.append(x)
    assert_near(found[1], found[0], 1e-3)


def test_noise_is_added(device):
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=50)
    x, noise, t = (
        torch.randn(2, 3, 8, 8),
        torch.randn(2, 3, 8, 8),
        torch.tensor([4, 40]),
    )
    expected = scheduler.add_noise(x, noise, t)
    there = scheduler.add_noise(x.to(device), noise.to(device), t.to(device))
    assert_near(there, expected, 1e-5)


def test_pipeline(device):
    model = unet().eval()
    found = []
    for place in ("cpu", device):
        pipeline = diffusers.DDIMPipeline(
            unet=copy.deepcopy(model),
            scheduler=diffusers.DDIMScheduler(num_train_timesteps=50),
        ).to(place)
        pipeline.set_progress_bar_config(disable=True)
        assert pipeline.device.type == place
        pictures = pipeline(
            batch_size=2,
            num_inference_steps=4,
            generator=torch.Generator().manual_seed(3),
            output_type="np",
        ).images
        found.append(torch.from_numpy(pictures))
    assert found[0].shape == (2, 8, 8, 3)
    assert_near(found[1], found[0], 1e-3)
