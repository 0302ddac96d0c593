# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Packages of which one test is enough."""

import copy

import pytest
import torch

from three_steps import assert_near, compare, to, without_dropout


def test_einops(device):
    einops = pytest.importorskip("einops")
    from einops.layers.torch import Rearrange, Reduce

    x = torch.randn(2, 3, 8, 8)
    y = x.to(device)
    for pattern in ("b c (h i) (w j) -> b (h w) (c i j)", "b c h w -> (b h) w c"):
        sizes = dict(i=2, j=4) if "i" in pattern else {}
        assert_near(
            einops.rearrange(y, pattern, **sizes),
            einops.rearrange(x, pattern, **sizes),
            0,
        )
    for how in ("mean", "max", "sum"):
        assert_near(
            einops.reduce(y, "b c (h 2) w -> b c h", how),
            einops.reduce(x, "b c (h 2) w -> b c h", how),
            1e-5,
        )
    assert_near(einops.repeat(y, "b c h w -> b c (h 2) w"), x.repeat_interleave(2, 2))
    assert_near(
        einops.einsum(y, y, "b c h w, b d h w -> b c d"),
        einops.einsum(x, x, "b c h w, b d h w -> b c d"),
        1e-4,
    )
    model = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
        torch.nn.Linear(48, 8),
        Reduce("b n d -> b d", "mean"),
    )
    compare(model, [x], device)


def test_safetensors(device, tmp_path):
    pytest.importorskip("safetensors")
    from safetensors.torch import load_file, load_model, save_file, save_model

    there = {
        "a": torch.randn(3, 4, device=device),
        "b": torch.arange(5, device=device, dtype=torch.int64),
        "c": torch.randn(4, device=device).bfloat16(),
    }
    save_file(there, tmp_path / "x.safetensors")
    found = load_file(tmp_path / "x.safetensors")
    assert_near(found, {k: there[k] for k in found}, 0)
    model = torch.nn.Linear(4, 4).to(device)
    save_model(model, str(tmp_path / "m.safetensors"))
    other = torch.nn.Linear(4, 4).to(device)
    load_model(other, tmp_path / "m.safetensors")
    assert_near(dict(other.state_dict()), dict(model.state_dict()), 0)


def test_safetensors_straight_to_the_device(device, tmp_path):
    pytest.importorskip("safetensors")
    import safetensors
    from safetensors.torch import load_file, save_file

    from holdfast_torch.integrations import safetensors as ours

    tensors = {"a": torch.randn(3, 4), "b": torch.arange(6).view(2, 3)}
    save_file(tensors, tmp_path / "x.safetensors")
    with ours.device():
        found = load_file(tmp_path / "x.safetensors", device=device)
        with safetensors.safe_open(
            tmp_path / "x.safetensors", "pt", device=device
        ) as f:
            part = f.get_slice("b")[:, 1:]
            assert f.get_tensor("a").device.type == device
    assert all(t.device.type == device for t in found.values())
    assert_near(found, {k: tensors[k] for k in found}, 0)
    assert part.device.type == device and torch.equal(part.cpu(), tensors["b"][:, 1:])


def lora(device, **more):
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    from transformers_decoders import ALL

    config = transformers.AutoConfig.for_model("llama", **ALL["llama"])
    model = transformers.AutoModelForCausalLM.from_config(without_dropout(config))
    config = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", **more
    )
    return peft, peft.get_peft_model(model, config)


@pytest.mark.parametrize("dora", [False, True])
def test_peft(device, dora, tmp_path):
    peft, model = lora(device, lora_dropout=0.0, use_dora=dora)
    tokens = torch.randint(3, 64, (2, 12))
    ours, theirs = compare(model, {"input_ids": tokens, "labels": tokens}, device)
    before = ours(tokens.to(device)).logits
    ours.save_pretrained(tmp_path)
    base = ours.merge_and_unload()
    assert_near(base(tokens.to(device)).logits, before, 1e-4)
    again = peft.PeftModel.from_pretrained(
        lora(device)[1].unload().to(device), str(tmp_path)
    )
    assert all(p.device.type == device for p in again.parameters())


def test_accelerate(device):
    accelerate = pytest.importorskip("accelerate")
    from holdfast_torch.integrations import accelerate as ours

    def steps(accelerator):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
        )
        data = torch.utils.data.TensorDataset(
            torch.randn(12, 4), torch.randint(2, (12,))
        )
        rows = torch.utils.data.DataLoader(data, batch_size=4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        model, optimizer, rows = accelerator.prepare(model, optimizer, rows)
        found = []
        for x, y in rows:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            found.append(accelerator.gather(loss.detach()).mean().item())
        return found, x.device.type

    with ours.device():
        found, place = steps(accelerate.Accelerator())
    assert place == device
    with ours.device("cpu"):
        expected, _ = steps(accelerate.Accelerator(cpu=True))
    assert found == pytest.approx(expected, rel=1e-4)


def test_torchmetrics(device):
    torchmetrics = pytest.importorskip("torchmetrics")
    logits, labels = torch.randn(3, 16, 5).softmax(-1), torch.randint(5, (3, 16))
    classes = dict(task="multiclass", num_classes=5)
    metrics = torchmetrics.MetricCollection(
        {
            "accuracy": torchmetrics.Accuracy(**classes),
            "auroc": torchmetrics.AUROC(**classes),
            "calibration": torchmetrics.CalibrationError(**classes),
            "confusion": torchmetrics.ConfusionMatrix(**classes),
            "f1": torchmetrics.F1Score(average="macro", **classes),
            "kappa": torchmetrics.CohenKappa(**classes),
            "precision": torchmetrics.AveragePrecision(**classes),
            "top": torchmetrics.Accuracy(top_k=2, **classes),
        }
    )
    numbers = torchmetrics.MetricCollection(
        {
            "correlation": torchmetrics.PearsonCorrCoef(),
            "error": torchmetrics.MeanSquaredError(),
            "explained": torchmetrics.ExplainedVariance(),
            "mean": torchmetrics.MeanAbsoluteError(),
            "r2": torchmetrics.R2Score(),
            "ranks": torchmetrics.SpearmanCorrCoef(),
        }
    )
    x, y = torch.randn(3, 20), torch.randn(3, 20)
    found = []
    for place in ("cpu", device):
        for one in (metrics.to(place), numbers.to(place)):
            one.reset()
        for i in range(3):
            metrics.update(logits[i].to(place), labels[i].to(place))
            numbers.update(x[i].to(place), y[i].to(place))
        found.append((dict(metrics.compute()), dict(numbers.compute())))
    assert_near(found[1], found[0], 1e-4)
    pictures = [torch.rand(2, 3, 32, 32) for _ in range(2)]
    for metric in (
        torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0),
        torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0),
    ):
        expected = metric(*pictures)
        assert_near(
            copy.deepcopy(metric).to(device)(*to(pictures, device)), expected, 1e-4
        )


def test_sentence_transformers(device, tmp_path):
    sentences = pytest.importorskip("sentence_transformers")
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {w: i for i, w in enumerate("[PAD] [UNK] a cat dog sees the".split())}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(tmp_path)
    config = transformers.AutoConfig.for_model(
        "bert",
        vocab_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    bert = transformers.AutoModel.from_config(without_dropout(config))
    bert.save_pretrained(tmp_path)
    from sentence_transformers.sentence_transformer import losses, modules as parts

    body = parts.Transformer(str(tmp_path), max_seq_length=8)
    pool = parts.Pooling(body.get_word_embedding_dimension())
    model = sentences.SentenceTransformer(modules=[body, pool], device="cpu")
    texts = ["the cat sees a dog", "a dog", "the cat"]
    expected = model.encode(texts)
    model.to(device)
    found = model.encode(texts, convert_to_tensor=True)
    assert found.device.type == device
    assert_near(found, torch.from_numpy(expected), 1e-4)
    scores = sentences.util.cos_sim(found, found)
    assert_near(scores, sentences.util.cos_sim(expected, expected), 1e-4)
    loss = losses.MultipleNegativesRankingLoss(model)
    rows = [to(dict(model.tokenize(texts)), device) for _ in range(2)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    values = []
    for _ in range(3):
        optimizer.zero_grad()
        value = loss([dict(r) for r in rows], None)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]
