// The supervisor over ranks that are small shell scripts. It runs in a child process, as it takes
// signals.
#include "supervisor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"
#include "environment.h"
#include "signal_gate.h"

namespace aitraining::launch {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPatience =
    30000;  // milliseconds after which a test gives up; never waited for when all is well

// Whether the process behind `pidfd` ends in time.
bool ends(int pidfd, int timeout_ms = kPatience) {
  pollfd watched{pidfd, POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

int watch(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

class Supervised : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& name : rank_variables()) unsetenv(name.c_str());
    std::string pattern = (fs::temp_directory_path() / "aitraining-supervisor-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_EQ(::mkfifo((folder_ / "ready").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((folder_ / "go").c_str(), 0600), 0);
    // Both ends open: neither side waits for the other to open it.
    ready_ = ::open((folder_ / "ready").c_str(), O_RDWR | O_CLOEXEC);
  }
  void TearDown() override {
    if (supervisor_ > 0) {
      ::kill(supervisor_, SIGKILL);
      ::waitpid(supervisor_, nullptr, 0);
    }
    ::close(ready_);
    for (int fd : held_) ::close(fd);
    fs::remove_all(folder_);
  }

  // `script` runs in each rank with $RANK; `say_ready` in it tells the test the rank's process
  // number.
  void start(int ranks, const std::string& script,
             Grace grace = {milliseconds(3000), milliseconds(3000)}) {
    const std::string prelude = "say_ready() { echo \"$RANK $$\" > '" +
                                (folder_ / "ready").string() + "'; }; cd '" + folder_.string() +
                                "'; ";
    LaunchPlan plan;
    plan.ranks = ranks;
    plan.threads_per_rank = 1;
    plan.cores = cores_;
    supervisor_ = ::fork();
    if (supervisor_ != 0) return;
    const int log = ::open((folder_ / "terminal").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    int code = 99;
    try {
      code = supervise_ranks(plan, {}, {"/bin/sh", {"-c", prelude + script}}, folder_.string(), grace);
    } catch (const Error& e) {
      ::dprintf(STDERR_FILENO, "%s\n", e.what());
      code = e.exit_code();
    }
    ::_exit(code);
  }

  // Process numbers of ranks 0 .. n-1 once all have said that they are ready.
  std::vector<int> wait_ready(int ranks) {
    std::string text;
    while (std::count(text.begin(), text.end(), '\n') < ranks) {
      pollfd watched{ready_, POLLIN, 0};
      if (::poll(&watched, 1, kPatience) != 1) {
        ADD_FAILURE() << "the ranks did not start: " << terminal();
        return {};
      }
      char block[256];
      const ssize_t n = ::read(ready_, block, sizeof(block));
      text.append(block, static_cast<size_t>(n));
    }
    std::vector<int> watched(static_cast<size_t>(ranks), -1);
    for (const std::string& line : split(text, '\n')) {
      const size_t blank = line.find(' ');
      watched.at(static_cast<size_t>(std::stoi(line))) = watch(std::stoi(line.substr(blank)));
    }
    return watched;
  }

  int exit_code() {
    const int pidfd = watch(supervisor_);
    EXPECT_TRUE(ends(pidfd)) << terminal();
    ::close(pidfd);
    int status = 0;
    ::waitpid(supervisor_, &status, 0);
    supervisor_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // Lets ranks go on that read a line from the named pipe "go".
  void write_to_go(int lines = 1) {
    const int go = ::open((folder_ / "go").c_str(), O_RDWR | O_CLOEXEC);
    for (int i = 0; i < lines; ++i) ASSERT_EQ(::write(go, "\n", 1), 1);
    held_.push_back(go);  // open until the test is over, so that no line is lost
  }

  std::string terminal() const { return read_file(folder_ / "terminal"); }
  bool terminal_has(const std::string& part) const {
    return terminal().find(part) != std::string::npos;
  }

  fs::path folder_;
  pid_t supervisor_ = -1;
  int ready_ = -1;
  std::vector<std::string> cores_;  // that the ranks are bound to
  std::vector<int> held_;
};

TEST_F(Supervised, AllWellAndEachRankKnowsWhoItIs) {
  start(3,
        "echo rank $RANK of $WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE at $MASTER_ADDR "
        "threads $OMP_NUM_THREADS "
        "store ${AITRAINING_STORE_FD:+yes}");
  EXPECT_EQ(exit_code(), 0) << terminal();
  EXPECT_TRUE(terminal_has("rank 0 of 3 local 0/3 at 127.0.0.1 threads 1 store yes\n"))
      << terminal();
  EXPECT_EQ(read_file(folder_ / "logs/rank1.log"),
            "rank 1 of 3 local 1/3 at 127.0.0.1 threads 1 store\n");
  EXPECT_EQ(read_file(folder_ / "logs/rank2.log"),
            "rank 2 of 3 local 2/3 at 127.0.0.1 threads 1 store\n");
  EXPECT_TRUE(terminal_has("rank=0 world=3") && terminal_has("rank=1 world=3") &&
              terminal_has("rank=2 world=3"));
}

// Rank 0 may be bound to one core, rank 1 is not, and a list that means nothing binds nothing.
TEST_F(Supervised, RanksAreBoundToTheCoresOfTheirGpu) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cores_ = {std::to_string(first), "", "nonsense"};
  start(3, "grep Cpus_allowed_list /proc/self/status > cores$RANK");
  EXPECT_EQ(exit_code(), 0) << terminal();
  EXPECT_EQ(read_file(folder_ / "cores0"), "Cpus_allowed_list:\t" + std::to_string(first) + "\n");
  EXPECT_EQ(read_file(folder_ / "cores1"), read_file(folder_ / "cores2"));
}

TEST(CoreSet, ReadsTheKernelsLists) {
  const cpu_set_t set = core_set("0-2,7,9-10");
  for (int core : {0, 1, 2, 7, 9, 10}) EXPECT_TRUE(CPU_ISSET(core, &set)) << core;
  EXPECT_EQ(CPU_COUNT(&set), 6);
  const cpu_set_t none = core_set("");
  EXPECT_EQ(CPU_COUNT(&none), 0);
}

TEST_F(Supervised, RankZeroInheritsTheListeningSocket) {
  start(2,
        "if [ $RANK = 0 ]; then test -S /proc/self/fd/$AITRAINING_STORE_FD; "
        "else test -z \"$AITRAINING_STORE_FD\"; fi");
  EXPECT_EQ(exit_code(), 0) << terminal();
}

TEST_F(Supervised, AFailingRankEndsTheOthersAndIsReportedWithItsLastLines) {
  start(3,
        "say_ready; if [ $RANK = 1 ]; then read line < go; echo first; echo the reason >&2; exit "
        "1; fi; "
        "while :; do sleep 100; done");
  const std::vector<int> ranks = wait_ready(3);
  ASSERT_EQ(ranks.size(), 3u);
  const auto begin = Clock::now();
  write_to_go();
  EXPECT_EQ(exit_code(), 1);
  EXPECT_LT(Clock::now() - begin, seconds(3)) << "the others end at SIGTERM";
  EXPECT_TRUE(terminal_has("rank 1 of 3 failed: exit code 1")) << terminal();
  EXPECT_TRUE(terminal_has("first\nthe reason")) << terminal();
  for (int pidfd : ranks) EXPECT_TRUE(ends(pidfd, 0));
}

TEST_F(Supervised, ARankThatDoesNotListenIsKilled) {
  start(2,
        "trap '' TERM; say_ready; if [ $RANK = 0 ]; then read line < go; exit 2; fi; while :; do "
        "sleep 100; done",
        {milliseconds(200), milliseconds(200)});
  const std::vector<int> ranks = wait_ready(2);
  ASSERT_EQ(ranks.size(), 2u);
  write_to_go();
  EXPECT_EQ(exit_code(), 2);
  EXPECT_TRUE(terminal_has("rank 0 of 2 failed: exit code 2")) << terminal();
  for (int pidfd : ranks) EXPECT_TRUE(ends(pidfd, 0));
}

TEST_F(Supervised, ARankKilledFromOutsideIsNamedWithItsSignal) {
  start(2, "say_ready; if [ $RANK = 1 ]; then kill -9 $$; fi; while :; do sleep 100; done");
  EXPECT_EQ(exit_code(), 137);
  EXPECT_TRUE(terminal_has("rank 1 of 2 failed: killed by signal 9 (Killed)")) << terminal();
}

TEST_F(Supervised, ALostPeerIsNotBlamed) {
  start(2,
        "if [ $RANK = 0 ]; then say_ready; read line < go; exit 3; fi; trap 'echo out of luck; "
        "exit 1' TERM; say_ready; "
        "while :; do sleep 0.01; done");
  ASSERT_EQ(wait_ready(2).size(), 2u);
  write_to_go();
  EXPECT_EQ(exit_code(), 1);
  EXPECT_TRUE(terminal_has("rank 1 of 2 failed: exit code 1")) << terminal();
  EXPECT_TRUE(terminal_has("out of luck")) << terminal();
}

class Signals : public Supervised, public ::testing::WithParamInterface<int> {};

TEST_P(Signals, EndAllRanksAndGiveTheirOwnExitCode) {
  start(4, "say_ready; while :; do sleep 100; done");
  const std::vector<int> ranks = wait_ready(4);
  ASSERT_EQ(ranks.size(), 4u);
  ::kill(supervisor_, GetParam());
  EXPECT_EQ(exit_code(), 128 + GetParam());
  EXPECT_TRUE(terminal_has("[INTERRUPTED] Training cancelled by user")) << terminal();
  for (int pidfd : ranks) EXPECT_TRUE(ends(pidfd, 0));
}

INSTANTIATE_TEST_SUITE_P(All, Signals, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_F(Supervised, SecondInterruptDoesNotWait) {
  // The ranks tell that SIGTERM came, and would go on saving for ever.
  start(2, "trap 'say_ready' TERM; say_ready; while :; do sleep 0.01; done",
        {seconds(60), seconds(60)});
  ASSERT_EQ(wait_ready(2).size(), 2u);
  ::kill(supervisor_, SIGINT);
  const std::vector<int> ranks = wait_ready(2);
  ASSERT_EQ(ranks.size(), 2u);
  const auto begin = Clock::now();
  ::kill(supervisor_, SIGINT);
  EXPECT_EQ(exit_code(), 130);
  EXPECT_LT(Clock::now() - begin, seconds(10));
  for (int pidfd : ranks) EXPECT_TRUE(ends(pidfd, 0));
}

TEST_F(Supervised, AKilledSupervisorLeavesNoRank) {
  start(3, "trap '' TERM INT HUP; say_ready; while :; do sleep 100; done");
  const std::vector<int> ranks = wait_ready(3);
  ASSERT_EQ(ranks.size(), 3u);
  ::kill(supervisor_, SIGKILL);
  EXPECT_EQ(exit_code(), -SIGKILL);
  for (int pidfd : ranks) EXPECT_TRUE(ends(pidfd));
}

TEST_F(Supervised, IgnoredHangupStaysIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  start(2, "say_ready; read line < go");
  ::signal(SIGHUP, SIG_DFL);
  ASSERT_EQ(wait_ready(2).size(), 2u);
  ::kill(supervisor_, SIGHUP);
  write_to_go(2);
  EXPECT_EQ(exit_code(), 0) << terminal();
}

TEST_F(Supervised, AProgramThatCannotBeStartedIsAnError) {
  LaunchPlan plan;
  plan.ranks = 2;
  EXPECT_THROW(supervise_ranks(plan, {}, {(folder_ / "none").string(), {}}, folder_.string(), {}),
               EnvironmentError);
}

TEST(SingleProcess, SignalsEndItWithTheirExitCode) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    const auto end = [&] {
      exit_on_signals();
      ::raise(number);
    };
    EXPECT_EXIT(end(), ::testing::ExitedWithCode(128 + number),
                "INTERRUPTED. Training cancelled by user");
  }
}

// A listener on a free port of the loopback address.
struct Listener {
  Listener() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(fd, 1);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd); }
  int fd, port;
};

TEST_F(Supervised, ABusyPortThatTheUserNamedIsAnErrorWithTheWayOut) {
  const Listener busy;
  setenv("MASTER_PORT", std::to_string(busy.port).c_str(), 1);
  start(2, "exit 0");
  unsetenv("MASTER_PORT");
  EXPECT_EQ(exit_code(), 2);
  EXPECT_TRUE(terminal_has("port " + std::to_string(busy.port) +
                           " cannot be used for the rendezvous: Address already in use"))
      << terminal();
  EXPECT_TRUE(terminal_has("Unset MASTER_PORT")) << terminal();
}

TEST_F(Supervised, APortLeftOverTogetherWithRankIsNotUsed) {
  const Listener busy;
  setenv("MASTER_PORT", std::to_string(busy.port).c_str(), 1);
  setenv("RANK", "1", 1);
  start(2, "exit 0");
  unsetenv("MASTER_PORT");
  unsetenv("RANK");
  EXPECT_EQ(exit_code(), 0) << terminal();
}

TEST_F(Supervised, AFreePortThatTheUserNamedIsUsed) {
  int port;
  {
    const Listener free;
    port = free.port;
  }
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  start(2, "test $MASTER_PORT = " + std::to_string(port));
  unsetenv("MASTER_PORT");
  EXPECT_EQ(exit_code(), 0) << terminal();
}

}  // namespace
}  // namespace aitraining::launch
