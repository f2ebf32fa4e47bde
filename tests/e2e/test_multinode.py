"""Several machines: two launchers with one rendezvous, on loopback and in two network namespaces; ranks that torchrun,
Slurm or MPI started; and what is said when the machines do not find each other (S45)."""
import os
import subprocess
import sys
import uuid

import pytest

from fixtures import models
from fixtures.data import chats, random_chats
from fixtures.reading import difference, weights
from fixtures.runner import binary, environment, finish, kill_tree, start, train, training_command
from fixtures.ports import free_port

RUN = {"lr": 1e-3, "batch_size": 1, "gradient_accumulation": 2, "epochs": 1}
QUICK = {"rendezvous_timeout": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return chats(tmp_path_factory.mktemp("multinode") / "data", random_chats(24, seed=5))


@pytest.fixture(scope="module")
def alone(m0, data, tmp_path_factory):
    """Four ranks on one machine."""
    return train(m0, data, tmp_path_factory.mktemp("alone") / "project", ranks=4, **RUN).ok()


def machine(number, model, data, project, port, *words, machines=2, address="127.0.0.1", prefix=(), env=None, **options):
    options = {"ranks": 2, "nnodes": machines, "node_rank": number, "master_addr": address, "master_port": port, **options}
    return start(training_command(model, data, project, *words, **options), prefix=prefix, env=env)


def both(processes, projects, timeout=120):
    results = []
    try:
        for process, project in zip(processes, projects):
            results.append(finish(process, timeout, project))
    finally:
        for process in processes:
            kill_tree(process) if process.poll() is None else None
    return results


def same_run(first, alone):
    assert first.losses == pytest.approx(alone.losses, rel=1e-6)
    assert difference(weights(first.project), weights(alone.project)) < 1e-5


@pytest.mark.parametrize("engine", ("ddp", "deepspeed"))
@pytest.mark.parametrize("one_folder", (True, False), ids=("one folder", "two folders"))
def test_s45_two_machines_on_loopback(m0, data, tmp_path, alone, engine, one_folder):
    port = free_port()
    projects = [tmp_path / "0", tmp_path / ("0" if one_folder else "1")]
    processes = [machine(n, m0, data, projects[n], port, distributed_backend=engine, **RUN) for n in (0, 1)]
    first, second = both(processes, projects)
    assert first.ok() and second.code == 0, second.output
    same_run(first, alone)
    assert ("do not share" in first.output) != one_folder
    if not one_folder:
        assert not (projects[1] / "model.safetensors").exists()


def test_accelerates_names_and_file(m0, data, tmp_path, alone):
    """The other spellings of the flags, and accelerate's own configuration file instead of flags."""
    port = free_port()
    project = tmp_path / "project"
    home = tmp_path / "home" / "accelerate"
    home.mkdir(parents=True)
    (home / "default_config.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmachine_rank: 0\nmain_process_ip: 127.0.0.1\n"
        f"main_process_port: {port}\nnum_machines: 2\nnum_processes: 4\nsame_network: true\n")
    first = start(training_command(m0, data, project, **RUN), env={"HF_HOME": tmp_path / "home"})
    words = ("--num-machines", 2, "--machine_rank", 1, "--main-process-ip", "127.0.0.1", "--main_process_port", port)
    second = start([*training_command(m0, data, project, ranks=2, **RUN), *words])
    results = both([first, second], [project, project])
    assert [r.code for r in results] == [0, 0], results[0].output + results[1].output
    assert "accelerate's configuration file" in results[0].output
    same_run(results[0], alone)


def can_make_namespaces():
    probe = f"probe-{uuid.uuid4().hex[:6]}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True) if os.geteuid() == 0 else None
    if made is not None and made.returncode == 0:
        subprocess.run(["ip", "netns", "delete", probe], check=True)
    return made is not None and made.returncode == 0


@pytest.fixture
def two_hosts():
    """Two network namespaces joined by a veth pair: (name, address) of each."""
    tag = uuid.uuid4().hex[:6]
    hosts = [(f"host-a-{tag}", "10.77.0.1"), (f"host-b-{tag}", "10.77.0.2")]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)
    try:
        for name, _ in hosts:
            ip("netns", "add", name)
        ip("link", "add", f"va{tag}", "netns", hosts[0][0], "type", "veth", "peer", "name", f"vb{tag}", "netns", hosts[1][0])
        for (name, address), link in zip(hosts, (f"va{tag}", f"vb{tag}")):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield hosts
    finally:
        for name, _ in hosts:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces need root and iproute2")
@pytest.mark.parametrize("engine", ("ddp", "deepspeed"))
def test_two_hosts_with_a_network_between_them(m0, data, tmp_path, alone, two_hosts, engine):
    projects = [tmp_path / "0", tmp_path / "1"]
    processes = [machine(n, m0, data, projects[n], 29611, distributed_backend=engine, address=two_hosts[0][1],
                         prefix=["ip", "netns", "exec", two_hosts[n][0]], **RUN) for n in (0, 1)]
    first, second = both(processes, projects)
    assert first.ok() and second.code == 0, second.output
    same_run(first, alone)


def test_torchrun_starts_the_ranks(m0, data, tmp_path, alone):
    project = tmp_path / "project"
    words = [*training_command(m0, data, project, **RUN), "--launcher", "torchrun"]
    at = words.index("--log")
    del words[at:at + 2]  # torchrun takes it for its own
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port", str(free_port()),
               "--no-python", binary(), *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert difference(weights(project), weights(alone.project)) < 1e-5
    assert result.stdout.count("Project folder:") == 2  # rank 0 alone prints


def slurm(rank, port):
    return {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NODEID": 0, "SLURM_STEP_NUM_TASKS": 4,
            "SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": port - 20000}


def mpi(rank, port):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank, "OMPI_COMM_WORLD_SIZE": 4,
            "OMPI_COMM_WORLD_LOCAL_SIZE": 4, "MASTER_PORT": port}


@pytest.mark.parametrize("launcher,variables", (("slurm", slurm), ("mpi", mpi)))
def test_other_launchers(m0, data, project, alone, launcher, variables):
    port = free_port() if launcher == "mpi" else 20000 + free_port() % 20000
    command = [*training_command(m0, data, project, **RUN), "--launcher", launcher]
    processes = [start(command, env=variables(rank, port)) for rank in range(4)]
    results = both(processes, [project] * 4)
    assert [r.code for r in results] == [0] * 4, "".join(r.output for r in results)[-3000:]
    same_run(results[0], alone)


def test_a_launcher_that_is_not_there(m0, data, project):
    for name, variable in (("torchrun", "RANK"), ("slurm", "SLURM_PROCID"), ("mpi", "OMPI_COMM_WORLD_RANK")):
        result = train(m0, data, project, launcher=name, **RUN)
        assert result.code == 2 and variable in result.output


@pytest.mark.parametrize("options,words", (
    ({"nnodes": 2}, ("master_addr", "machine 0")),
    ({"nnodes": 2, "node_rank": 2, "master_addr": "127.0.0.1"}, ("--node-rank", "not below")),
    ({"launcher": "torchrun", "nnodes": 2}, ("torchrun", "remove --nnodes")),
))
def test_contradictions_are_refused(m0, data, project, options, words):
    train(m0, data, project, **options).refused(*words)


def test_a_missing_machine_is_named(m0, data, project):
    process = machine(0, m0, data, project, free_port(), **RUN, **QUICK)
    result = finish(process, 60, project)
    assert result.code == 1
    for word in ("waited 4 s", "rank 2, 3", "machine 1", "--node-rank"):
        assert word in result.output, result.output[-2000:]


def test_a_wrong_address_is_said(m0, data, project):
    process = machine(1, m0, data, project, free_port(), **RUN, **QUICK)
    result = finish(process, 60, project)
    assert result.code == 1
    for word in ("cannot reach the rendezvous at 127.0.0.1", "--master-addr", "--master-port"):
        assert word in result.output, result.output[-2000:]


def test_two_machines_with_one_number(m0, data, tmp_path):
    port = free_port()
    processes = [machine(n, m0, data, tmp_path / str(i), port, machines=3, **RUN, rendezvous_timeout=20)
                 for i, n in enumerate((0, 1, 1))]
    results = both(processes, [tmp_path / str(i) for i in range(3)], timeout=60)
    assert all(r.code != 0 for r in results)
    said = [r for r in results if "two processes say that they are rank" in r.output and "--node-rank" in r.output]
    assert len(said) == 3, "".join(r.output[-800:] for r in results)


def test_machines_with_other_settings(m0, data, tmp_path):
    port = free_port()
    processes = [machine(n, m0, data, tmp_path / str(n), port, **{**RUN, "seed": 7 + n}, rendezvous_timeout=20)
                 for n in (0, 1)]
    results = both(processes, [tmp_path / "0", tmp_path / "1"], timeout=60)
    assert all(r.code != 0 for r in results)
    for r in results:
        assert "other settings than rank 0: seed 8 here, 7 on rank 0" in r.output, r.output[-1500:]


def test_machines_with_other_models_or_data(m0, data, tmp_path):
    other = models.write_m0(tmp_path / "other", seed=77)
    more = chats(tmp_path / "more", random_chats(24, seed=6))
    for number, (model, rows, words) in enumerate(((other, data, "weights of the base model"), (m0, more, "training data"))):
        port = free_port()
        projects = [tmp_path / f"{number}-{n}" for n in (0, 1)]
        processes = [machine(0, m0, data, projects[0], port, **RUN), machine(1, model, rows, projects[1], port, **RUN)]
        results = both(processes, projects, timeout=60)
        assert all(r.code != 0 for r in results)
        assert all("other settings than rank 0: " + words in r.output for r in results), results[1].output[-1500:]


@pytest.mark.parametrize("here,there", ((1, 2), (2, 1)))
def test_machines_with_other_numbers_of_ranks(m0, data, tmp_path, here, there):
    port = free_port()
    projects = [tmp_path / "0", tmp_path / "1"]
    processes = [machine(n, m0, data, projects[n], port, ranks=count, **RUN, rendezvous_timeout=20)
                 for n, count in enumerate((here, there))]
    results = both(processes, projects, timeout=60)
    assert all(r.code != 0 for r in results)
    assert all("Give every machine the same --nnodes and --nproc-per-node" in r.output for r in results), \
        results[0].output[-1500:] + results[1].output[-1500:]
