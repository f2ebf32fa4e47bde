"""The Python side of the comparisons: TRL's SFTTrainer on the CPU, one JSON line per update and rank.

Each line holds the update's number, the wall-clock time at its end, the real (not padding) tokens that went through this
rank's model since the start, the trained ones, and the loss.
"""
import argparse
import json
import os
import time


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--peft", action="store_true")
    parser.add_argument("--response-only", action="store_true")
    parser.add_argument("--deepspeed", help="its configuration file")
    return parser.parse_args()


ARGS = parse()
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402  (the arguments are checked before seconds of imports)

torch.set_num_threads(ARGS.threads)

from datasets import Dataset  # noqa: E402
from peft import LoraConfig  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from trl import SFTConfig, SFTTrainer  # noqa: E402


def emit(**record):
    """In one write, newline and all: several ranks share the output."""
    print(f"BENCH {json.dumps(record)}\n", end="", flush=True)


class CountingTrainer(SFTTrainer):
    """Counts what goes through the model: positions that are not padding, and those with a label."""

    tokens = trained = 0

    def compute_loss(self, model, inputs, *args, **kwargs):
        self.tokens += int(inputs["attention_mask"].sum())
        self.trained += int((inputs["labels"][:, 1:] != -100).sum())
        return super().compute_loss(model, inputs, *args, **kwargs)


class Report(TrainerCallback):
    def __init__(self):
        self.ends = []

    def on_step_end(self, args, state, control, **kwargs):
        self.ends.append((time.time(), trainer.tokens, trainer.trained))

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            end, tokens, trained = self.ends[state.global_step - 1]
            emit(step=state.global_step, time=end, tokens=tokens, trained=trained, loss=logs["loss"])


def rows():
    """Conversations; for the loss on responses only, split into prompt and completion, which works with any template."""
    with open(ARGS.data, encoding="utf-8") as file:
        conversations = [json.loads(line)["messages"] for line in file]
    if not ARGS.response_only:
        return Dataset.from_list([{"messages": messages} for messages in conversations])
    return Dataset.from_list([{"prompt": messages[:-1], "completion": messages[-1:]} for messages in conversations])


config = SFTConfig(
    output_dir=ARGS.output, max_steps=ARGS.steps, per_device_train_batch_size=ARGS.batch_size,
    gradient_accumulation_steps=ARGS.accumulation, learning_rate=1e-4, warmup_steps=0, lr_scheduler_type="linear",
    logging_steps=1, save_strategy="no", eval_strategy="no", report_to=[], bf16=False, use_cpu=True, packing=False,
    max_length=ARGS.max_length, gradient_checkpointing=False, seed=42, disable_tqdm=True, deepspeed=ARGS.deepspeed,
    completion_only_loss=True if ARGS.response_only else None, model_init_kwargs={"dtype": "float32"})
lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM")
trainer = CountingTrainer(model=ARGS.model, args=config, train_dataset=rows(), callbacks=[Report()],
                          peft_config=lora if ARGS.peft else None)
trainer.train()
