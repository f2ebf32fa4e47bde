"""Dequantises SmolLM2's GGUF file into a folder in Hugging Face's form: gguf_to_hf.py FILE FOLDER."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fixtures.smollm2 import load_model, load_tokenizer  # noqa: E402  (the path above makes it importable)

file, folder = Path(sys.argv[1]), Path(sys.argv[2])
load_tokenizer(file).save_pretrained(folder)
load_model(file).save_pretrained(folder)
