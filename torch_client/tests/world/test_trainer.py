# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""transformers' Trainer, saving and loading of a model."""

import copy
import json

import pytest
import torch

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from three_steps import assert_near, without_dropout  # noqa: E402
from transformers_decoders import ALL  # noqa: E402


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(5)
        self.rows = torch.randint(3, 64, (count, 12), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def model_of(kind="llama"):
    config = transformers.AutoConfig.for_model(kind, **ALL[kind])
    return transformers.AutoModelForCausalLM.from_config(without_dropout(config))


def arguments(folder, **more):
    return transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=3,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        logging_steps=1,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        data_seed=7,
        **more,
    )


def losses(trainer):
    trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def test_trainer(device, tmp_path):
    from holdfast_torch.integrations import accelerate as ours

    model = model_of()
    other = copy.deepcopy(model)
    expected = transformers.Trainer(
        other, arguments(tmp_path / "a", use_cpu=True), train_dataset=Tokens(16)
    )
    on_cpu = losses(expected)
    expected_loss = expected.evaluate(Tokens(4))["eval_loss"]
    with ours.device():
        trainer = transformers.Trainer(
            model,
            arguments(tmp_path / "b", dataloader_pin_memory=False),
            train_dataset=Tokens(16),
            eval_dataset=Tokens(4),
        )
        assert trainer.args.device.type == device
        found = losses(trainer)
        assert all(p.device.type == device for p in model.parameters())
        assert found == pytest.approx(on_cpu, rel=1e-3) and len(found) == 3
        measured = trainer.evaluate()["eval_loss"]
    assert measured == pytest.approx(expected_loss, rel=1e-3)


def test_a_checkpoint_goes_on(device, tmp_path):
    from holdfast_torch.integrations import accelerate as ours

    with ours.device():
        named = dict(dataloader_pin_memory=False)
        args = arguments(tmp_path, **named)
        args.save_strategy, args.save_steps = transformers.IntervalStrategy.STEPS, 2
        start = model_of()
        whole = transformers.Trainer(
            copy.deepcopy(start), args, train_dataset=Tokens(16)
        )
        first = losses(whole)
        again = transformers.Trainer(start, args, train_dataset=Tokens(16))
        again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    last = [r["loss"] for r in again.state.log_history if "loss" in r]
    assert last[-1] == pytest.approx(first[-1], rel=1e-4)
    state = json.loads((tmp_path / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["global_step"] == 2


def test_saved_and_loaded(device, tmp_path):
    model = model_of().to(device)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path, device_map=device)
    assert again.device.type == device
    assert_near(dict(again.state_dict()), dict(model.state_dict()), 0)
