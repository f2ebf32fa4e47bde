"""Every parameter of a language model's training. Made by scripts/python_params.py from `aitraining schema`."""
# Do not edit: a test compares this file with what the executable says.
from __future__ import annotations

from dataclasses import dataclass, field

from aitraining._names import KnownNames

# What other tools call a parameter, for suggestions only.
ALSO_CALLED = {
    "base_model": "model",
    "model_name_or_path": "model",
    "model_name": "model",
    "output_dir": "project_name",
    "output": "project_name",
    "project": "project_name",
    "data": "data_path",
    "dataset": "data_path",
    "dataset_path": "data_path",
    "eval_split": "valid_split",
    "validation_split": "valid_split",
    "test_split": "valid_split",
    "max_length": "block_size",
    "max_seq_length": "block_size",
    "cutoff_len": "block_size",
    "report_to": "log",
    "evaluation_strategy": "eval_strategy",
    "learning_rate": "lr",
    "num_epochs": "epochs",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "train_batch_size": "batch_size",
    "micro_batch_size": "batch_size",
    "warmup_steps": "warmup_ratio",
    "warmup": "warmup_ratio",
    "optim": "optimizer",
    "lr_scheduler": "scheduler",
    "lr_scheduler_type": "scheduler",
    "clip_grad": "max_grad_norm",
    "lora": "peft",
    "use_lora": "peft",
    "use_peft": "peft",
    "lora_target_modules": "target_modules",
    "lora_target": "target_modules",
    "lora_rank": "lora_r",
    "num_processes": "nproc_per_node",
    "hf_token": "token",
    "hub_token": "token",
    "hub_model_id": "repo_id",
}


@dataclass(kw_only=True)
class LLMTrainingParams(KnownNames, other_names=ALSO_CALLED):
    """Values are checked by the executable when a project is created. None: unset."""

    # Basic

    # Base model: folder in Hugging Face form, or a .gguf file
    model: str = ""
    # Output folder; a relative one lives in the current directory or AUTOTRAIN_PROJECTS_DIR
    project_name: str = ""
    # Folder with <split>.csv, .jsonl, .json or .tsv, or one such file
    data_path: str = ""
    # Training split: the file's name without its ending
    train_split: str = "train"
    # Validation split; turns evaluation on
    valid_split: str | None = None
    # Use this many rows, evenly spaced
    max_samples: int | None = None

    # Data Processing

    # End every plain text row with the end-of-sequence token
    add_eos_token: bool = True
    # Tokens per row at most; -1: min(model_max_length, 1024)
    block_size: int = -1
    # Context limit; 2048: taken from the model
    model_max_length: int = 2048
    # Padding side; no effect, since batches carry no padding (left, right)
    padding: str | None = "right"
    # none, tokenizer, a built-in name (chatml, zephyr, ...) or a file; unset: the tokenizer's own when rows are message
    # lists
    chat_template: str | None = None
    # Column with the text or the list of messages
    text_column: str = "text"
    # Render message lists; --no-apply-chat-template equals --chat-template none
    apply_chat_template: bool = True
    # Column with the prompt [dpo, orpo, reward]
    prompt_text_column: str | None = None
    # Column with the rejected answer [dpo, orpo, reward]
    rejected_text_column: str | None = None
    # Recognise other forms of rows and convert them [not in this build]
    auto_convert_dataset: bool = False
    # Join so many single-turn rows to one conversation [not in this build]
    conversation_extension: int = 1
    # Where rendered rows are kept; in this build nowhere (auto, local, hub, both)
    save_processed_data: str | None = "auto"
    # Renderer of chats [not in this build]
    chat_format: str | None = None
    # Weights of roles as JSON [not in this build]
    token_weights: str | None = None

    # Training Configuration

    # Training method: sft on chats or texts, default on plain text (sft, default, dpo, orpo, ppo, reward, distillation,
    # grpo, generic)
    trainer: str = "default"
    # Attention kernel; no effect, since the fastest exact one of the device is always used (eager, sdpa,
    # flash_attention_2)
    attn_implementation: str | None = None
    # Pack short rows into full blocks; attention never crosses rows
    packing: bool | None = None
    # Tracker: wandb or none; in this build both write trainer_state.json only (wandb, tensorboard)
    log: str | None = "wandb"
    # FlashAttention-2; no effect, since the fastest exact kernel of the device is always used
    use_flash_attention_2: bool = False
    # Halve the batch when memory runs out [not in this build]
    auto_find_batch_size: bool = False
    # Open the W&B viewer [not in this build]
    wandb_visualizer: bool | None = None
    # Keep activations instead of recomputing them
    disable_gradient_checkpointing: bool = False
    # Log every so many updates; -1: chosen from the run's length
    logging_steps: int = -1
    # When to evaluate (epoch, steps, no)
    eval_strategy: str = "epoch"
    # Updates between evaluations with --eval-strategy steps
    eval_steps: int = 500
    # When to write a checkpoint (epoch, steps, no)
    save_strategy: str = "epoch"
    # Updates between checkpoints with --save-strategy steps
    save_steps: int = 500
    # Checkpoints kept, newest first
    save_total_limit: int = 1
    # Compute type over fp32 master weights; unset: fp32 (bf16, fp16, fp8, no, fp32)
    mixed_precision: str | None = None
    # Engine on several ranks: ddp (whole copies), deepspeed or zero3 (parameters, gradients and optimizer state
    # sharded), zero2 (parameters whole); unset: ddp (ddp, deepspeed, zero3, zero2)
    distributed_backend: str | None = None
    # ZeRO-3: so many of the last units stay whole within an update, for less communication; auto: as many as memory
    # allows
    zero3_resident: str = "0"
    # Where fp32 masters and optimizer state are kept: cpu, or on the rank's device (cpu)
    offload_optimizer: str | None = None
    # ZeRO-3: where a rank's own part of the parameters is kept: cpu, or on its device (cpu)
    offload_param: str | None = None
    # Checkpoint folder, or auto (also true, latest): the newest of the project
    resume_from_checkpoint: str | None = None
    # Seconds that a rank waits for the others in a collective
    ddp_timeout: int = 7200
    # Compare a checksum of the weights over all ranks after every update
    check_replicas: bool = False
    # Sum gradients in rank order: equal bits with every engine at equal rank count
    deterministic: bool = False

    # Training Hyperparameters

    # Peak learning rate
    lr: float = 3e-05
    # Passes over the data
    epochs: int = 1
    # Rows (or packs) per rank and micro-step
    batch_size: int = 2
    # Part of all updates in which the rate rises from 0
    warmup_ratio: float = 0.1
    # Micro-steps per update
    gradient_accumulation: int = 4
    # Optimizer (adamw_torch, adamw_torch_fused, sgd, adafactor, adamw_hf, adamw_8bit, adamw_bnb_8bit, paged_adamw_8bit,
    # paged_adamw_32bit, lion_32bit, lion_8bit, rmsprop, adagrad)
    optimizer: str = "adamw_torch"
    # Course of the learning rate (linear, cosine, constant, constant_with_warmup, cosine_with_restarts, polynomial,
    # inverse_sqrt, reduce_lr_on_plateau, cosine_with_min_lr, warmup_stable_decay)
    scheduler: str = "linear"
    # Decoupled weight decay
    weight_decay: float = 0.0
    # Clip the gradient's norm to this; 0: no clipping
    max_grad_norm: float = 1.0
    # Seed of data order, adapters and dropout
    seed: int = 42

    # SFT Training

    # Train on the assistant's turns only [default, sft]
    response_only_loss: bool = True

    # PEFT/LoRA

    # Train LoRA adapters instead of all weights
    peft: bool = False
    # Write the merged model into the project folder; the adapter is kept in adapter/
    merge_adapter: bool = True
    # Quantized base: int4 or int8 (not in this build) (int4, int8)
    quantization: str | None = None
    # LoRA targets: all-linear, a comma list, or a regular expression
    target_modules: str | list[str] | None = "all-linear"
    # LoRA rank
    lora_r: int = 16
    # LoRA alpha; the adapter counts alpha / r
    lora_alpha: int = 32
    # Dropout in front of the adapter
    lora_dropout: float = 0.05
    # Type of the merged model; unset: the training type (fp32, bf16, fp16)
    merge_dtype: str | None = None

    # DPO/ORPO

    # Reference model (for ppo: the reward model); unset: the model before training [dpo, orpo, ppo]
    model_ref: str | None = None
    # Weight of the distance to the reference model [dpo, orpo]
    dpo_beta: float = 0.1
    # Tokens of the prompt at most [dpo, orpo]
    max_prompt_length: int = 128
    # Tokens of the completion at most (ORPO) [dpo, orpo, sft, default] [not in this build]
    max_completion_length: int | None = None

    # Knowledge Distillation

    # Add the distance to a teacher's distribution to the loss [default, sft] [not in this build]
    use_distillation: bool = False
    # Teacher: folder or .gguf file [default, sft] [not in this build]
    teacher_model: str | None = None
    # Prompt of the teacher, with {input} [default, sft] [not in this build]
    teacher_prompt_template: str | None = None
    # Prompt of the student, with {input} [default, sft] [not in this build]
    student_prompt_template: str | None = "{input}"
    # Temperature of both distributions [default, sft] [not in this build]
    distill_temperature: float = 3.0
    # Weight of the teacher's part of the loss [default, sft] [not in this build]
    distill_alpha: float = 0.7
    # Tokens of the teacher's answer at most [default, sft] [not in this build]
    distill_max_teacher_length: int = 512

    # Hyperparameter Sweep

    # Search for good hyperparameters [not in this build]
    use_sweep: bool = False
    # How trials are chosen (optuna, grid, random, ray) [not in this build]
    sweep_backend: str | None = "optuna"
    # Number of trials [not in this build]
    sweep_n_trials: int = 10
    # Logged number to optimise [not in this build]
    sweep_metric: str | None = "eval_loss"
    # What is better (minimize, maximize) [not in this build]
    sweep_direction: str | None = "minimize"
    # Search space as JSON [not in this build]
    sweep_params: str | None = None

    # Enhanced Evaluation

    # More metrics during training [not in this build]
    use_enhanced_eval: bool = False
    # Names of metrics, separated by commas [not in this build]
    eval_metrics: str | None = "perplexity"
    # Evaluation data of its own [not in this build]
    eval_dataset_path: str | None = None
    # Rows per rank in enhanced evaluation [not in this build]
    eval_batch_size: int = 8
    # Keep predictions of the evaluation [not in this build]
    eval_save_predictions: bool = False
    # Name of a benchmark [not in this build]
    eval_benchmark: str | None = None

    # Reinforcement Learning (PPO)

    # Discount [ppo]
    rl_gamma: float = 0.99
    # Lambda of the advantage estimate [ppo]
    rl_gae_lambda: float = 0.95
    # Weight of the distance to the reference model [ppo, grpo]
    rl_kl_coef: float = 0.1
    # Weight of the value loss [ppo]
    rl_value_loss_coef: float = 1.0
    # Clip range of the policy's ratio [ppo, grpo]
    rl_clip_range: float = 0.2
    # Name of a reward function [ppo]
    rl_reward_fn: str | None = None
    # Several rewards [ppo]
    rl_multi_objective: bool = False
    # Weights of several rewards as JSON [ppo]
    rl_reward_weights: str | None = None
    # Environment (text_generation, multi_objective, preference_comparison) [ppo]
    rl_env_type: str | None = None
    # Options of the environment as JSON [ppo, grpo]
    rl_env_config: str | None = None
    # Reward model [ppo]
    rl_reward_model_path: str | None = None
    # Passes over each batch of answers [ppo]
    rl_num_ppo_epochs: int = 4
    # Rows per chunk [ppo]
    rl_chunk_size: int = 128
    # Rows per mini-batch [ppo]
    rl_mini_batch_size: int = 8
    # Hint for device memory [ppo]
    rl_optimize_device_cache: bool = True
    # Clip range of the value [ppo]
    rl_value_clip_range: float = 0.2
    # Generated tokens at most [ppo, grpo]
    rl_max_new_tokens: int = 128
    # Sample from so many tokens; 0: from all [ppo, grpo]
    rl_top_k: int = 50
    # Sample from this much of the probability [ppo, grpo]
    rl_top_p: float = 1.0
    # Sampling temperature [ppo, grpo]
    rl_temperature: float = 1.0

    # Reinforcement Learning (GRPO)

    # Python module with the environment [grpo] [not in this build]
    rl_env_module: str | None = None
    # Class of the environment [grpo] [not in this build]
    rl_env_class: str | None = None
    # Answers per prompt [grpo]
    rl_num_generations: int = 4
    # Form of the loss (grpo, dapo, dr_grpo, bnpo, cispo, sapo) [grpo]
    rl_loss_type: str = "grpo"
    # Leave cut answers out of the loss [grpo]
    rl_mask_truncated_completions: bool = False
    # Generate with vLLM [grpo] [not in this build]
    use_vllm: bool = False
    # Where vLLM runs (colocate, server) [grpo] [not in this build]
    vllm_mode: str = "colocate"
    # vLLM's share of the memory [grpo] [not in this build]
    vllm_gpu_memory_utilization: float = 0.3
    # Address of a vLLM server [grpo] [not in this build]
    vllm_server_url: str | None = None
    # GPUs per vLLM copy [grpo] [not in this build]
    vllm_tensor_parallel_size: int = 1
    # GPUs kept for the vLLM server [grpo] [not in this build]
    vllm_server_gpus: int = 1

    # Advanced Features

    # Another loss (composite, kl) [not in this build]
    custom_loss: str | None = None
    # Weights of a composite loss as JSON [not in this build]
    custom_loss_weights: str | None = None
    # Names of metrics as a JSON list [not in this build]
    custom_metrics: str | None = None
    # Low-level loop [sft] [not in this build]
    use_forward_backward: bool = False
    # Loss of the low-level loop [sft] [not in this build]
    forward_backward_loss_fn: str | None = None
    # Python source of a loss [sft] [not in this build]
    forward_backward_custom_fn: str | None = None
    # Accumulation of the low-level loop [sft] [not in this build]
    gradient_accumulation_steps: int = 1
    # Step the optimizer by hand [sft] [not in this build]
    manual_optimizer_control: bool = False
    # Steps of the low-level loop per update [sft] [not in this build]
    optimizer_step_frequency: int = 1
    # Clipping of the low-level loop [sft] [not in this build]
    grad_clip_value: float | None = 1.0
    # Save states by hand [not in this build]
    manual_checkpoint_control: bool = False
    # Updates between saved states; 0: none [not in this build]
    save_state_every_n_steps: int = 0
    # Saved state to begin with [not in this build]
    load_state_from: str | None = None
    # Updates between sample texts; 0: none [not in this build]
    sample_every_n_steps: int = 0
    # Prompts of the samples as JSON [not in this build]
    sample_prompts: str | None = None
    # Temperature of the samples [not in this build]
    sample_temperature: float = 1.0
    # Sample from so many tokens; 0: from all [not in this build]
    sample_top_k: int = 50
    # Sample from this much of the probability [not in this build]
    sample_top_p: float = 1.0

    # Inference

    # File of prompts, or prompts separated by commas [not in this build]
    inference_prompts: str | None = None
    # New tokens at most [not in this build]
    inference_max_tokens: int = 256
    # Temperature [not in this build]
    inference_temperature: float = 1.0
    # Sample from this much of the probability [not in this build]
    inference_top_p: float = 1.0
    # Sample from so many tokens; 0: from all [not in this build]
    inference_top_k: int = 50
    # File for the answers [not in this build]
    inference_output: str | None = None

    # Launcher

    # Ranks on this machine; unset: one per visible GPU, one on CPU
    nproc_per_node: int | None = None
    # Machines of this run; the command is started on each, with the same --nproc-per-node
    nnodes: int = 1
    # Machines of this run; the command is started on each, with the same --nproc-per-node
    num_machines: int = 1
    # Number of this machine, from 0; the first one holds the project folder
    node_rank: int = 0
    # Number of this machine, from 0; the first one holds the project folder
    machine_rank: int = 0
    # Address of machine 0, as the others reach it
    master_addr: str | None = None
    # Address of machine 0, as the others reach it
    main_process_ip: str | None = None
    # Port on machine 0 where ranks meet; unset: 29500 with several machines, else any free one
    master_port: int | None = None
    # Port on machine 0 where ranks meet; unset: 29500 with several machines, else any free one
    main_process_port: int | None = None
    # Something else started this process as one rank, and its variables count: torchrun, slurm or mpi; unset: this
    # command starts the ranks (torchrun, slurm, mpi)
    launcher: str | None = None
    # Seconds that ranks wait for each other at the start
    rendezvous_timeout: int = 600
    # On several ranks, measure the connection of every pair before work: quick, or none (quick)
    preflight: str | None = "quick"
    # auto: GPUs when there are any (auto, cpu, cuda)
    device: str = "auto"

    # Hub Integration

    # Upload the result [not in this build]
    push_to_hub: bool = False
    # Hub user name
    username: str | None = None
    # Hub token
    token: str | None = field(default=None, repr=False)
    # Hub repository
    repo_id: str | None = None
    # Weights & Biases key
    wandb_token: str | None = field(default=None, repr=False)
    # Make the Hub repository private
    hub_private: bool = True

    # Other

    # Column with images [dpo, orpo] [not in this build]
    image_column: str | None = None
    # Read ShareGPT rows [not in this build]
    use_sharegpt_mapping: bool = False
    # Set by the conversion of ShareGPT rows [not in this build]
    sharegpt_mapping_enabled: bool = False
    # Template proposed by a wizard [not in this build]
    suggested_chat_template: str | None = None
    # Roles to columns, for the conversion: ROLE=COLUMN,... or JSON [not in this build]
    column_mapping: dict[str, str] | None = None
    # Keys of the template to the rows' keys: KEY=NAME,... or JSON [not in this build]
    runtime_mapping: dict[str, str] | None = None
    # Take ends of turns as the end of the sequence [not in this build]
    map_eos_token: bool = False
    # Use the Python library Unsloth [not in this build]
    unsloth: bool = False
    # Shell command after each trial [not in this build]
    post_trial_script: str | None = None
    # Group trials as a W&B sweep [not in this build]
    wandb_sweep: bool = False
    # W&B project of the sweep [not in this build]
    wandb_sweep_project: str | None = None
    # W&B team of the sweep [not in this build]
    wandb_sweep_entity: str | None = None
    # W&B sweep to go on with [not in this build]
    wandb_sweep_id: str | None = None
    # W&B run to go on with [not in this build]
    wandb_run_id: str | None = None
