"""Writes chats of about 190 SmolLM2 tokens, always the same for the same seed: python chats.py FOLDER [ROWS]."""
import json
import random
import sys
from pathlib import Path

TASKS = ["explain", "describe", "compare", "summarise", "outline", "discuss"]
TOPICS = ["rivers", "volcanoes", "bread", "bicycles", "astronomy", "bees", "music", "chess", "gardens", "trains", "poetry",
          "coffee", "glass", "islands", "painting", "weather", "maps", "clocks", "rice", "soap"]
WORDS = ("morning evening harbour engine letter window bridge market winter summer teacher farmer sailor garden forest "
         "slow bright heavy quiet narrow distant early carries follows builds repairs remembers describes with under "
         "behind between because although when and the a every another most").split()


def sentence(rng, shortest, longest):
    words = [rng.choice(WORDS) for _ in range(rng.randint(shortest, longest))]
    return " ".join(words).capitalize() + "."


def chat(rng):
    question = f"Please {rng.choice(TASKS)} {rng.choice(TOPICS)} for me. {sentence(rng, 5, 40)}"
    answer = " ".join(sentence(rng, 8, 20) for _ in range(rng.randint(3, 14)))
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def write(folder, rows, seed=0):
    rng = random.Random(seed)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with open(Path(folder) / "train.jsonl", "w", encoding="utf-8") as file:
        for _ in range(rows):
            file.write(json.dumps({"messages": chat(rng)}) + "\n")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
