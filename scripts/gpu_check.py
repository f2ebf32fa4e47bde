"""The checks of gpu_check.sh. Needs Python and PyTorch only: fixtures are written by hand."""
import argparse
import json
import math
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

BYTES = 256
SPECIAL = ["<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16"}


# --- fixtures -------------------------------------------------------------------------------------------------------

def write_safetensors(file, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tofile(stream)


def read_safetensors(file):
    with open(file, "rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(size))
    data = torch.frombuffer(bytearray(Path(file).read_bytes()[8 + size:]), dtype=torch.uint8)
    kinds = {text: dtype for dtype, text in DTYPES.items()}
    return {name: data[slice(*entry["data_offsets"])].view(kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def write_tokenizer(folder):
    """One byte, one token: byte-level BPE without merges."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = iter(range(BYTES))
    letters = [chr(b) if b in plain else chr(BYTES + next(other)) for b in range(BYTES)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": level,
        "post_processor": None, "decoder": level,
        "added_tokens": [{"id": BYTES + i, "content": text, **flags} for i, text in enumerate(SPECIAL)],
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {c: i for i, c in enumerate(letters)}, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "<|im_end|>", "pad_token": "<pad>",
        "chat_template": CHATML}))


@dataclass
class Shape:
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    context: int
    dtype: torch.dtype = torch.float32

    @property
    def matrix_weights(self):
        """Weights that a token is multiplied with: blocks and head."""
        kv = self.hidden // self.heads * self.kv_heads
        block = 2 * self.hidden * self.hidden + 2 * self.hidden * kv + 3 * self.hidden * self.inner
        return self.layers * block + self.vocabulary * self.hidden


def write_llama(folder, shape, device, std=0.02):
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator(device).manual_seed(1)
    h, kv = shape.hidden, shape.hidden // shape.heads * shape.kv_heads

    def matrix(rows, columns):
        return (torch.randn(rows, columns, generator=generator, device=device) * std).to(shape.dtype).cpu()
    tensors = {"model.embed_tokens.weight": matrix(shape.vocabulary, h)}
    for layer in range(shape.layers):
        name = f"model.layers.{layer}."
        for part, rows, columns in (("self_attn.q_proj", h, h), ("self_attn.k_proj", kv, h), ("self_attn.v_proj", kv, h),
                                    ("self_attn.o_proj", h, h), ("mlp.gate_proj", shape.inner, h),
                                    ("mlp.up_proj", shape.inner, h), ("mlp.down_proj", h, shape.inner)):
            tensors[f"{name}{part}.weight"] = matrix(rows, columns)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{name}{norm}.weight"] = torch.ones(h, dtype=shape.dtype)
    tensors["model.norm.weight"] = torch.ones(h, dtype=shape.dtype)
    tensors["lm_head.weight"] = matrix(shape.vocabulary, h)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": shape.vocabulary, "hidden_size": h,
        "intermediate_size": shape.inner, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads, "max_position_embeddings": shape.context, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "attention_bias": False,
        "mlp_bias": False, "bos_token_id": 256, "eos_token_id": 260, "torch_dtype": str(shape.dtype).split(".")[1]}))
    write_tokenizer(folder)
    return folder


def write_chats(folder, rows, shortest, longest, seed=0):
    rng = random.Random(seed)
    letters = "etaoin shrdlu cmfwyp "
    folder.mkdir(parents=True, exist_ok=True)

    def words():
        return "".join(rng.choice(letters) for _ in range(rng.randint(shortest, longest)))
    with open(folder / "train.jsonl", "w") as file:
        for _ in range(rows):
            messages = [{"role": "user", "content": words()}, {"role": "assistant", "content": words()}]
            file.write(json.dumps({"messages": messages}) + "\n")
    return folder


# --- runs -----------------------------------------------------------------------------------------------------------

class GpuMemory(threading.Thread):
    """Highest memory in use on the first GPU above what was in use at the start, as nvidia-smi tells it."""

    def __init__(self, wanted):
        super().__init__(daemon=True)
        self.stopped, self.peak = threading.Event(), 0
        self.first = self.read() if wanted else None

    @staticmethod
    def read():
        words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[0]) * 2**20

    def run(self):
        while self.first is not None and not self.stopped.wait(0.2):
            self.peak = max(self.peak, self.read() - self.first)


@dataclass
class Run:
    name: str
    code: int
    seconds: float
    output: str
    losses: list = field(default_factory=list)
    norms: list = field(default_factory=list)
    tokens_per_second: float = math.nan
    first_update: float = math.nan
    peak_rss: int = 0
    peak_gpu: int = 0
    project: Path | None = None

    def numbers(self):
        keep = ("name", "code", "seconds", "losses", "norms", "tokens_per_second", "first_update", "peak_rss", "peak_gpu")
        return {key: getattr(self, key) for key in keep}


def clean_environment(extra=None):
    foreign = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {**{k: v for k, v in os.environ.items() if k not in foreign}, **(extra or {})}


def execute(name, command, project, gpu, timeout, env=None):
    """Runs to the end, notes when each update was logged, and reads the log that was left."""
    memory = GpuMemory(gpu)
    memory.start()
    begin, ends, lines = time.monotonic(), [], []
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=clean_environment(env))
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    for line in process.stdout:
        lines.append(line)
        if "'loss'" in line:
            ends.append(time.monotonic())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    watchdog.cancel()
    memory.stopped.set()
    memory.join()
    run = Run(name, process.returncode, time.monotonic() - begin, "".join(lines), project=project,
              peak_rss=usage.ru_maxrss * 1024, peak_gpu=memory.peak)
    if run.code == 0:
        read_log(run, ends, begin)
    return run


def read_log(run, ends, begin):
    history = json.loads((run.project / "trainer_state.json").read_text())["log_history"]
    records = [record for record in history if "loss" in record]
    run.losses = [record["loss"] for record in records]
    run.norms = [record["grad_norm"] for record in records]
    seen = [record["num_input_tokens_seen"] for record in records]
    if len(ends) != len(records) or not ends:
        return
    run.first_update = ends[0] - begin
    if len(ends) > 3:
        run.tokens_per_second = (seen[-1] - seen[2]) / max(1e-9, ends[-1] - ends[2])


def furthest(first, second):
    """Largest relative difference."""
    if len(first) != len(second) or not first:
        return math.inf
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(first, second))


# --- checks ---------------------------------------------------------------------------------------------------------

class Checks:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.gpu = options.device == "cuda"
        self.begin, self.runs, self.results = time.monotonic(), {}, []

    def left(self):
        return self.options.seconds - (time.monotonic() - self.begin)

    def expect(self, name, passed, detail):
        self.results.append({"check": name, "passed": bool(passed), "detail": detail})
        print(f"{'ok  ' if passed else 'FAIL'} {name}: {detail}", flush=True)

    def train(self, name, model, data, device, *words, **options):
        """None when time is short or the run failed, which is then a failed check of its own."""
        if self.left() < 20:
            self.expect(name, False, "not run: out of time")
            return None
        project = self.work / "runs" / name.replace(" ", "-").replace(",", "")
        options = {"model": model, "data_path": data, "project_name": project, "trainer": "sft", "log": "none", "epochs": 1,
                   "save_strategy": "no", "logging_steps": 1, "text_column": "messages", "device": device,
                   "nproc_per_node": 1, "warmup_ratio": 0, **options}
        flags = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
        return self.keep(execute(name, [self.options.binary, "llm", "--train", *flags, *words], project,
                                 device == "cuda", max(20, self.left())))

    def keep(self, run):
        self.runs[run.name] = run
        if run.code != 0:
            self.expect(run.name, False, f"exit {run.code}\n{run.output[-3000:]}")
            return None
        return run

    def agree(self, name, run, reference, loss, norm):
        if not run or not reference:
            return
        far, apart = furthest(run.losses, reference.losses), furthest(run.norms, reference.norms)
        finite = all(map(math.isfinite, run.losses + run.norms))
        self.expect(name, finite and far < loss and apart < norm,
                    f"{len(run.losses)} updates, loss {run.losses[0]:.5f} -> {run.losses[-1]:.5f}, "
                    f"furthest loss {far:.2e} (< {loss:g}), grad_norm {apart:.2e} (< {norm:g})")

    def parity(self):
        """Ten updates on the device against the same ten on the CPU; then bf16 against fp32."""
        shape = Shape(256, 688, 4, 8, 4, 264, 512)
        model = write_llama(self.work / "small", shape, "cpu", std=0.06)
        data = write_chats(self.work / "small-data", 80, 30, 150)
        same = {"batch_size": 4, "gradient_accumulation": 2, "lr": 1e-3}
        lora = ("--peft", "--no-merge-adapter")
        device = self.options.device
        for kind, words, extra in (("full", (), {}), ("lora", lora, {"lora_dropout": 0.1, "lr": 3e-3})):
            options = {**same, **extra}
            cpu = self.train(f"{kind}, cpu, fp32", model, data, "cpu", *words, **options)
            one = self.train(f"{kind}, {device}, fp32", model, data, device, *words, **options)
            self.agree(f"{kind}: {device} = cpu", one, cpu, 1e-4, 1e-3)
            half = self.train(f"{kind}, {device}, bf16", model, data, device, *words, mixed_precision="bf16", **options)
            self.agree(f"{kind}: bf16 near fp32", half, cpu, 2e-2, 1e-1)
        kept = self.train(f"full, {device}, kept activations", model, data, device, "--disable-gradient-checkpointing", **same)
        self.agree("recomputation changes nothing", kept, self.runs.get(f"full, {device}, fp32"), 1e-6, 1e-5)
        packed = self.train(f"packed, {device}", model, data, device, "--packing", block_size=512, **{**same, "lr": 0})
        plain = self.train(f"not packed, {device}", model, data, device, **{**same, "lr": 0})
        if packed and plain:
            self.same_epoch_loss(packed, plain)
        self.groups_of_one()

    def same_epoch_loss(self, packed, plain):
        def mean(run):
            history = json.loads((run.project / "trainer_state.json").read_text())["log_history"]
            rows = [r for r in history if "loss" in r]
            return sum(r["loss"] * r["num_trained_tokens"] for r in rows) / sum(r["num_trained_tokens"] for r in rows)
        far = abs(mean(packed) - mean(plain)) / mean(plain)
        self.expect("packing keeps the loss", far < 1e-5, f"relative difference {far:.2e} (< 1e-05)")

    def groups_of_one(self):
        """The same run as a rank of a group of one, through NCCL on a GPU and Gloo on a CPU, with every engine: a group of
        one gathers, reduces and steps as any other does."""
        device = self.options.device
        single = self.runs.get(f"full, {device}, fp32")
        if not single or single.code != 0:
            return
        engines = {"ddp": {}, "zero2": {}, "zero3": {}, "zero3 resident": {"zero3_resident": "auto"},
                   "zero3 in order": {"deterministic": True},
                   "zero3 offloaded": {"offload_optimizer": "cpu", "offload_param": "cpu"}}
        for name, changes in engines.items():
            run = self.group_of_one(f"group of one, {name}", single, distributed_backend=name.split()[0], **changes)
            self.agree(f"{name} = no group", run, single, 1e-5, 1e-4)
            if run and device == "cuda" and name == "ddp":
                self.expect("the group went through NCCL", "nccl" in run.output.lower(), "NCCL's name in the run's output")

    def group_of_one(self, name, single, **changes):
        project = self.work / "runs" / name.replace(" ", "-").replace(",", "")
        project.mkdir(parents=True, exist_ok=True)
        params = json.loads((single.project / "training_params.json").read_text())
        params.update(project_name=str(project), **changes)
        file = project / "training_params.json"
        file.write_text(json.dumps(params, indent=4))
        env = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(free_port()), "NCCL_DEBUG": "VERSION"}
        return self.keep(execute(name, [self.options.binary, "--run-rank", file], project, self.gpu,
                                 max(20, self.left()), env))

    def resume(self):
        shape = Shape(256, 688, 4, 8, 4, 264, 512)
        model = write_llama(self.work / "small", shape, "cpu", std=0.06)
        data = write_chats(self.work / "small-data", 80, 30, 150)
        device = self.options.device
        same = {"batch_size": 4, "gradient_accumulation": 2, "lr": 1e-3, "save_strategy": "steps", "save_steps": 5,
                "save_total_limit": 5, "mixed_precision": "bf16"}
        straight = self.train(f"straight, {device}", model, data, device, **same)
        if not straight:
            return
        again = self.train(f"resumed, {device}", model, data, device,
                           resume_from_checkpoint=straight.project / "checkpoint-5", **same)
        self.agree("resumed = straight", again, straight, 1e-5, 1e-4)
        if again:
            one, two = (read_safetensors(run.project / "model.safetensors") for run in (straight, again))
            far = max(float((one[n].float() - two[n].float()).abs().max()) for n in one)
            self.expect("resumed weights = straight weights", far < 1e-2, f"furthest {far:.1e} (stored in bf16)")

    def speed(self):
        """A model of real size: rate, memory, share of the matrix products' peak."""
        if self.gpu:
            shape = Shape(2048, 5632, 16, 32, 8, 32000, 2048, torch.bfloat16)
            rows, lengths, updates = 384, (480, 540), 12
        else:
            shape = Shape(64, 128, 2, 4, 2, 320, 2048, torch.bfloat16)
            rows, lengths, updates = 24, (40, 60), 6
        model = write_llama(self.work / "large", shape, self.options.device)
        data = write_chats(self.work / "large-data", rows, *lengths)
        same = {"batch_size": rows // updates // 2, "gradient_accumulation": 2, "lr": 1e-5, "mixed_precision": "bf16",
                "block_size": 2048}
        device = self.options.device
        lora = ("--peft", "--no-merge-adapter")
        for name, words in (("speed full bf16", ()), ("speed full bf16 kept", ("--disable-gradient-checkpointing",)),
                            ("speed lora bf16", lora), ("speed lora bf16 kept", (*lora, "--disable-gradient-checkpointing"))):
            run = self.train(name, model, data, device, *words, **same)
            if run:
                flops = 6 * shape.matrix_weights * run.tokens_per_second / 1e12
                falling = all(map(math.isfinite, run.losses)) and run.losses[-1] < run.losses[0]
                self.expect(name, falling, f"{run.tokens_per_second:.0f} tokens/s, {flops:.1f} TFLOP/s at 6N, loss "
                                           f"{run.losses[0]:.3f} -> {run.losses[-1]:.3f}")
                shutil.rmtree(run.project, ignore_errors=True)  # gigabytes

    def table(self):
        yield "| run | exit | s | first update, s | tokens/s | peak GPU, GiB | peak RSS, GiB | loss first -> last |"
        yield "|---|---|---|---|---|---|---|---|"
        for run in self.runs.values():
            losses = f"{run.losses[0]:.5f} -> {run.losses[-1]:.5f}" if run.losses else "-"
            yield (f"| {run.name} | {run.code} | {run.seconds:.1f} | {run.first_update:.1f} | {run.tokens_per_second:.0f} | "
                   f"{run.peak_gpu / 2**30:.2f} | {run.peak_rss / 2**30:.2f} | {losses} |")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def describe(device):
    if device == "cuda":
        return f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
    return f"CPU, {os.cpu_count()} cores, PyTorch {torch.__version__}"


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder for gpu_check.json")
    parser.add_argument("--seconds", type=float, default=450, help="stop starting runs after this long")
    parser.add_argument("--only", action="append", choices=["parity", "resume", "speed"])
    return parser.parse_args()


def main():
    options = parse()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU here; --device cpu makes a dry run")
    work = Path(tempfile.mkdtemp(prefix="gpu-check-"))
    print(describe(options.device), flush=True)
    try:
        checks = Checks(options, work)
        for part in options.only or ["parity", "resume", "speed"]:
            getattr(checks, part)()
        print("\n".join(checks.table()))
        failed = [result for result in checks.results if not result["passed"]]
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "gpu_check.json").write_text(json.dumps({
            "machine": describe(options.device), "checks": checks.results,
            "runs": [run.numbers() for run in checks.runs.values()]}, indent=2))
        print(f"{len(checks.results) - len(failed)} passed, {len(failed)} failed, {time.monotonic() - checks.begin:.0f} s")
        return 1 if failed else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
